//! Taxes, discounts and totals, as words and figures.

use rust_decimal::Decimal;
use trade_document::{Charge, CodeAndName, ROUNDING, Tax, TradeDocument};

use crate::dates::write_date;
use crate::facts::SENTENCE;
use crate::figures::{write_amount, write_percent};
use crate::labelled::LabelledText;
use crate::text::{TextSpace, fit_text, printable_text};

/// The space for a label or an amount in the totals.
pub const SUM: TextSpace = TextSpace {
    characters_max: 160,
    word_max: 13_000,
};
/// The maximum length of the reason of a discount or fee, in characters.
const REASON_CHARACTERS_MAX: usize = 120;

/// Returns the name of a code, or the code itself if it has no name.
pub fn code_label(coded: &CodeAndName) -> &str {
    if coded.name.is_empty() {
        &coded.code
    } else {
        &coded.name
    }
}

/// Returns a tax in words, such as "VAT 7.5 %".
pub fn tax_label(tax: &Tax) -> String {
    let name = code_label(&tax.category);
    match tax.percent {
        Some(percent) => format!("{name} {}", write_percent(percent)),
        None => name.to_owned(),
    }
}

/// Returns a discount or fee in words, such as "Discount 10 %, loyalty".
pub fn charge_label(charge: &Charge) -> String {
    if charge.reason.as_deref() == Some(ROUNDING) {
        return ROUNDING.to_owned();
    }
    let mut name = if charge.is_fee { "Fee" } else { "Discount" }.to_owned();
    if let Some(rate) = charge.rate {
        name.push(' ');
        name.push_str(&write_percent(rate));
    }
    if let Some(reason) = &charge.reason {
        name.push_str(", ");
        name.push_str(&fit_text(reason, REASON_CHARACTERS_MAX));
    }
    if let Some(tax) = &charge.tax {
        name.push_str(" (");
        name.push_str(&tax_label(tax));
        name.push(')');
    }
    name
}

/// Returns the amount as it is added: a discount is negative.
pub fn signed_amount(charge: &Charge) -> Decimal {
    if charge.is_fee {
        charge.amount
    } else {
        -charge.amount
    }
}

/// Lists the steps from the sum of the lines to the payable amount. Steps that change nothing are left out.
pub fn list_sums(document: &TradeDocument) -> Vec<LabelledText> {
    let totals = &document.totals;
    let sum = |label: &str, amount: Decimal| {
        LabelledText::new(label, &write_amount(amount, &document.currency), SUM)
    };
    let mut sums = Vec::new();
    if !document.charges.is_empty() || totals.lines != totals.tax_exclusive {
        sums.push(sum("Sum of lines", totals.lines));
    }
    let charges = document.charges.iter();
    sums.extend(charges.map(|charge| sum(&charge_label(charge), signed_amount(charge))));
    sums.push(sum("Total without tax", totals.tax_exclusive));
    sums.push(sum("Tax", document.tax()));
    sums.push(sum("Total with tax", totals.tax_inclusive));
    if !totals.prepaid.is_zero() {
        sums.push(sum("Prepaid", -totals.prepaid));
    }
    if !totals.rounding.is_zero() {
        sums.push(sum("Rounding", totals.rounding));
    }
    sums.into_iter().flatten().collect()
}

/// Returns a sentence for each means of payment, and the payment terms.
pub fn describe_payment(document: &TradeDocument) -> Vec<String> {
    let means = document.payment_means.iter().map(|payment| {
        let name = code_label(&payment.means);
        match payment.due_date {
            Some(date) => format!("{name}, due {}", write_date(date)),
            None => name.to_owned(),
        }
    });
    means
        .chain(document.payment_terms.clone())
        .map(|text| printable_text(&text, SENTENCE))
        .filter(|text| !text.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_named_by_its_kind_and_reason_or_is_a_rounding() {
        for (is_fee, reason, expected) in [
            (false, None, "Discount"),
            (true, Some("Freight"), "Fee, Freight"),
            (false, Some(ROUNDING), "Rounding"),
            (true, Some(ROUNDING), "Rounding"),
        ] {
            let charge = Charge {
                is_fee,
                amount: Decimal::ONE,
                rate: None,
                reason: reason.map(str::to_owned),
                tax: None,
            };
            assert_eq!(charge_label(&charge), expected);
        }
    }
}
