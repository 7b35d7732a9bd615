//! Compares the sums that a UBL document states with those that this service computes for the invoice. Other sums mean
//! another invoice, so each difference leads to a warning or a refusal.

use crate::domain::money::Amount;

/// The stable id of the rule that a document breaks if its file states another sum than this service computes.
pub const SUM_RULE: &str = "sum";

/// The sums that a UBL document states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatedSums {
    pub without_tax: Amount,
    pub with_tax: Amount,
    /// True if the percent of a tax is not the one that the authority lists for its category.
    pub has_other_rates: bool,
}

/// The sums that this service computes for the invoice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComputedSums {
    pub without_tax: Amount,
    pub with_tax: Amount,
    pub lines: usize,
    /// The number of decimal digits of the currency.
    pub digits: u32,
}

impl StatedSums {
    /// Compares these sums with those computed for a standard invoice. The sums with tax may differ, because Create
    /// Standard uses the authority's tax rates; a difference then gives a warning. The sums without tax must not differ
    /// by more than rounding; otherwise the error describes the difference.
    pub fn compare(self, computed: ComputedSums) -> Result<Option<String>, String> {
        let is_rounded =
            |here, there| differs_at_most_by_rounding(here, there, computed.lines, computed.digits);
        if !is_rounded(computed.without_tax, self.without_tax) {
            return Err(format!(
                "The total without tax is {} in the file, but its lines come to {}.",
                self.without_tax, computed.without_tax
            ));
        }
        if computed.with_tax == self.with_tax {
            return Ok(None);
        }
        let (here, there) = (computed.with_tax, self.with_tax);
        let why = if self.has_other_rates {
            "because the authority's rates of tax are not those of the file"
        } else if is_rounded(here, there) {
            "by rounding"
        } else {
            "because the tax of the file is not that of its rates"
        };
        Ok(Some(format!(
            "The total with tax is {here} here and {there} in the file, {why}."
        )))
    }
}

/// True if the amounts differ by no more than one unit of the currency's last digit for each line.
pub(super) fn differs_at_most_by_rounding(
    first: Amount,
    second: Amount,
    lines: usize,
    digits: u32,
) -> bool {
    let lines = i64::try_from(lines).unwrap_or(i64::MAX);
    let allowed = Amount::smallest_amount(digits).times(Amount::from(lines));
    allowed.is_some_and(|allowed| first.is_within(allowed, second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_with_its_true_reason() {
        const ROUNDING: &str = "by rounding";
        const RATES: &str = "the authority's rates of tax are not those of the file";
        const TAX: &str = "the tax of the file is not that of its rates";
        const LINES: &str = "its lines come to";
        let sums = |texts: [&str; 2]| texts.map(|text| Amount::parse(text).unwrap());
        let naira = ["100", "107.50"];
        let yen = ["101", "109"];
        let dinar = ["100", "107.500"];
        // The digits, the lines, the sums here and in the file, whether the file has other rates, and the reason.
        for (digits, lines, here, there, has_other_rates, reason) in [
            (2, 1, naira, ["100", "107.50"], false, ""),
            (2, 1, naira, ["100", "107.50"], true, ""),
            (2, 1, naira, ["100", "107.51"], false, ROUNDING),
            (2, 2, naira, ["100", "107.52"], false, ROUNDING),
            (2, 1, naira, ["100", "107.52"], false, TAX),
            (2, 1, naira, ["100", "110.00"], false, TAX),
            (2, 1, naira, ["100", "119.00"], true, RATES),
            (2, 1, naira, ["100.01", "107.50"], false, ""),
            (2, 1, naira, ["100.02", "107.50"], false, LINES),
            (0, 1, yen, ["101", "108"], false, ROUNDING),
            (0, 1, yen, ["101", "107"], false, TAX),
            (0, 1, yen, ["103", "109"], false, LINES),
            (3, 1, dinar, ["100", "107.501"], false, ROUNDING),
            (3, 1, dinar, ["100", "107.509"], false, TAX),
            (3, 1, dinar, ["100.009", "107.510"], false, LINES),
        ] {
            let [without_tax, with_tax] = sums(there);
            let stated = StatedSums {
                without_tax,
                with_tax,
                has_other_rates,
            };
            let [without_tax, with_tax] = sums(here);
            let found = stated.compare(ComputedSums {
                without_tax,
                with_tax,
                lines,
                digits,
            });
            assert_eq!(found.is_err(), reason == LINES, "{there:?}: {found:?}");
            let told = found.unwrap_or_else(Some).unwrap_or_default();
            assert_eq!(told.is_empty(), reason.is_empty(), "{there:?}: {told}");
            assert!(told.contains(reason), "{there:?}: {told}");
        }
    }
}
