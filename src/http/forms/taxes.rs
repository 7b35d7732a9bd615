//! The taxes of a document. If the caller of Submit omits the taxes, they are derived from the totals.

use serde_json::{Value, json};

use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::document::{self, Totals};
use crate::http::forms::reader::Reader;

/// The tax category and its percent that are assumed while the authority's list of tax categories is not available.
const STANDARD_CATEGORY: (&str, &str) = ("STANDARD_VAT", "7.5");

/// Reads the optional taxes. If they are omitted, returns taxes derived from the totals, because the authority requires
/// taxes. `currency` is that of the totals. Returns `None` if the taxes were sent, or if none can be derived.
pub(crate) fn derive_omitted_tax_total(
    reader: &mut Reader<'_>,
    totals: Option<Totals>,
    currency: Option<&str>,
) -> Option<Value> {
    let is_given = reader.has("tax_total");
    reader
        .optional("tax_total")
        .objects(0, document::check_tax_total);
    if is_given {
        return None;
    }
    let totals = totals?;
    let tax = totals
        .tax_inclusive
        .minus(totals.tax_exclusive)
        .filter(|tax| !tax.is_negative())?;
    let catalog = reader.catalog();
    let digits = catalog.currency_digits(currency.unwrap_or_default());
    let found = fitting_category(tax, totals.tax_exclusive, digits, catalog);
    let Some((id, percent)) = found else {
        let rule = FieldRule::Other {
            id: "required",
            sentence: unfitting_tax_sentence(tax, totals, reader.catalog()).into(),
            expected: Some("a value"),
        };
        reader.report_fault("tax_total", rule);
        return None;
    };
    Some(json!([{
        "tax_amount": tax,
        "tax_subtotal": [{
            "taxable_amount": totals.tax_exclusive,
            "tax_amount": tax,
            "tax_category": { "id": id, "percent": percent },
        }],
    }]))
}

/// Returns the sentence of the fault if no percent fits. It shows the tax that the standard category would ask for.
fn unfitting_tax_sentence(tax: Amount, totals: Totals, catalog: &Catalog) -> String {
    let (standard, _) = STANDARD_CATEGORY;
    let due = catalog
        .tax_percent(standard)
        .percent_share(totals.tax_exclusive);
    let due = due.filter(|due| !due.is_zero());
    let due = due.map(|due| format!("; {standard} asks for {}", due.to_grouped_text()));
    format!(
        "is required: tax_inclusive_amount − tax_exclusive_amount is {} − {} = {}, and no tax category has that tax{}",
        totals.tax_inclusive.to_grouped_text(),
        totals.tax_exclusive.to_grouped_text(),
        tax.to_grouped_text(),
        due.unwrap_or_default(),
    )
}

/// Returns a tax category whose percent of `amount` is `tax`, within the tolerance of the specification or rounded to
/// the digits of the currency. Prefers the zero VAT category, then the standard one.
fn fitting_category(
    tax: Amount,
    amount: Amount,
    digits: u32,
    catalog: &Catalog,
) -> Option<(String, Amount)> {
    let known = catalog.tax_percents_by_category();
    if known.is_empty() {
        let percent = if tax.is_zero() {
            Amount::ZERO
        } else {
            Amount::parse(STANDARD_CATEGORY.1).ok()?
        };
        let id = if tax.is_zero() {
            "ZERO_VAT"
        } else {
            STANDARD_CATEGORY.0
        };
        return Some((id.to_owned(), percent));
    }
    let fitting: Vec<_> = known
        .into_iter()
        .filter(|(_, percent)| is_tax_at_percent(*percent, amount, tax, digits))
        .collect();
    let named = |word: &str| fitting.iter().find(|(id, _)| id.starts_with(word));
    let best = named("ZERO_VAT")
        .or_else(|| named(STANDARD_CATEGORY.0))
        .or_else(|| fitting.first());
    best.map(|(id, percent)| ((*id).to_owned(), *percent))
}

/// Returns true if `percent` of `amount` is `tax`, within the tolerance or rounded to this number of digits. The
/// rounding matters for a currency without hundredths, where it changes an amount by more than the tolerance. A tax of
/// zero is due at zero percent only.
fn is_tax_at_percent(percent: Amount, amount: Amount, tax: Amount, digits: u32) -> bool {
    if tax.is_zero() {
        percent.is_zero()
    } else {
        percent
            .percent_share(amount)
            .is_some_and(|due| due.is_within_tolerance(tax) || due.round_half_up(digits) == tax)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tax_is_its_percent_within_a_hundredth_or_rounded_to_the_currency() {
        for (percent, amount, tax, digits, is_due) in [
            ("7.5", "1010", "75.75", 2, true),
            ("7.5", "1010", "75.76", 2, true),
            ("7.5", "1010", "75.77", 2, false),
            ("7.5", "1010", "76", 2, false),
            ("7.5", "1010", "76", 0, true),
            ("7.5", "1010", "75", 0, false),
            ("7.5", "10.01", "0.751", 3, true),
            ("0", "1010", "0", 0, true),
            ("0", "10", "1", 0, false),
            ("5", "1", "0", 0, false),
        ] {
            let [percent, amount, tax] =
                [percent, amount, tax].map(|text| Amount::parse(text).unwrap());
            let found = is_tax_at_percent(percent, amount, tax, digits);
            assert_eq!(found, is_due, "{tax} is {percent} % of {amount}");
        }
    }
}
