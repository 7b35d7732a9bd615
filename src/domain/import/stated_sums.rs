//! The sums that a file states, beside those to which its invoice comes here. A file with other sums means another
//! invoice, so a difference is told or refused, and never passed over.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde_json::Number;

use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::table_columns::{LINE_PREFIX, LINE_SUM_COLUMN};
use crate::domain::invoice::totals::net;
use crate::domain::invoice::{Draft, Line};
use crate::domain::kernel::fault::Fault;
use crate::domain::money::{Amount, FRACTION_DIGITS_MAX};
use crate::domain::reference::catalog::Catalog;

/// The rule of a document whose file states another sum.
pub const SUM_RULE: &str = "sum";
const REMEDY: &str = "correct the row, or leave the column out; a fee, a price for several units or a charge on the \
                      whole invoice has no column in a table, so take JSON or UBL for such an invoice";

/// The sums of a document as its UBL states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatedSums {
    pub without_tax: Amount,
    pub with_tax: Amount,
}

impl StatedSums {
    /// Compares the sums of the file with those of its standard invoice. Create Standard takes the rates of tax from the
    /// authority, so that the sum with tax may be another one; that of the lines may not. Returns a warning if the sums
    /// with tax differ, or what is wrong if those without tax do.
    pub fn compare(self, own: Self, lines: usize) -> Result<Option<String>, String> {
        if !is_rounding(own.without_tax, self.without_tax, lines) {
            return Err(format!(
                "The total without tax is {} in the file, but its lines come to {}.",
                self.without_tax, own.without_tax
            ));
        }
        if own.with_tax == self.with_tax {
            return Ok(None);
        }
        let (here, there) = (own.with_tax, self.with_tax);
        let why = if is_rounding(here, there, lines) {
            "by rounding"
        } else {
            "because the authority's rates of tax are not those of the file"
        };
        Ok(Some(format!(
            "The total with tax is {here} here and {there} in the file, {why}."
        )))
    }
}

/// True if the amounts differ by no more than a hundredth for each line.
fn is_rounding(one: Amount, other: Amount, lines: usize) -> bool {
    let lines = i64::try_from(lines).unwrap_or(i64::MAX);
    let allowed = Amount::HUNDREDTH.times(Amount::from(lines));
    let difference = if one < other {
        other.minus(one)
    } else {
        one.minus(other)
    };
    difference
        .zip(allowed)
        .is_some_and(|(difference, allowed)| difference <= allowed)
}

/// The sums in the columns of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableSums {
    /// The sums of the whole invoice, by the names of their columns.
    pub invoice: BTreeMap<&'static str, Amount>,
    /// The amount of each line.
    pub lines: Vec<Option<Amount>>,
}

impl TableSums {
    /// Returns the fault of an invoice that comes to another sum than a filled cell states. The first line that differs
    /// says more than the sums above it.
    pub fn fault(&self, draft: &Draft, catalog: &Catalog) -> Option<Fault> {
        if self.invoice.is_empty() && self.lines.iter().all(Option::is_none) {
            return None;
        }
        let own = Breakdown::from_draft(draft, catalog).ok()?;
        let digits = catalog.currency_digits(&draft.currency);
        let lines = draft.lines.iter().zip(&own.lines);
        let mut lines = self.lines.iter().zip(lines).enumerate();
        let of_line = lines.find_map(|(index, (stated, (line, own)))| {
            let stated = stated.filter(|stated| !is_amount(line, *own, *stated, digits))?;
            let path = format!("invoice_lines.{index}.{LINE_SUM_COLUMN}");
            let name = format!("{LINE_PREFIX}{LINE_SUM_COLUMN}");
            Some(sum_fault(path, &name, stated, *own, "line"))
        });
        of_line.or_else(|| {
            self.invoice.iter().find_map(|(name, stated)| {
                let own = own_sum(name, &own)?;
                (own != *stated)
                    .then(|| sum_fault((*name).to_owned(), name, *stated, own, "invoice"))
            })
        })
    }
}

/// True if this is the amount of the line: as the invoice has it, or rounded by itself, or not rounded at all.
fn is_amount(line: &Line, own: Amount, stated: Amount, digits: u32) -> bool {
    let exact = net(line);
    stated == own
        || exact.is_some_and(|exact| stated == exact || stated == exact.round_half_up(digits))
}

/// Returns the sum that this column has in an export of the invoice.
fn own_sum(column: &str, own: &Breakdown) -> Option<Amount> {
    match column {
        "net_amount" => Some(own.totals.tax_exclusive_amount),
        "tax_amount" => own.tax(),
        _ => Some(own.totals.payable_amount),
    }
}

fn sum_fault(path: String, name: &str, stated: Amount, own: Amount, whole: &str) -> Fault {
    let message =
        format!("The {name} is {stated} in the file, but the {whole} comes to {own}: {REMEDY}.");
    Fault::new(path, SUM_RULE, message)
}

/// Reads the cell of a sum. A sheet may hold a number that is off by the last of its binary digits, which are more than an
/// amount has.
pub fn read_sum(cell: &str) -> Option<Amount> {
    cell.parse::<Number>().ok()?;
    let value = cell
        .parse::<Decimal>()
        .or_else(|_| Decimal::from_scientific(cell));
    let rounded = value.ok()?.round_dp(FRACTION_DIGITS_MAX);
    Amount::parse(&rounded.to_string()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_read_without_the_noise_of_floating_point() {
        for (cell, expected) in [
            ("1075.00", Some("1075.00")),
            ("0.30000000000000004", Some("0.3")),
            ("1e3", Some("1000")),
            ("1,075.00", None),
            ("1_000", None),
            ("NGN 5", None),
        ] {
            let expected = expected.map(|text| Amount::parse(text).unwrap());
            assert_eq!(read_sum(cell), expected, "{cell}");
        }
    }
}
