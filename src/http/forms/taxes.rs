//! The taxes of a document. If the caller of Submit omits the taxes, they are derived from the totals.

use serde_json::{Value, json};

use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;
use crate::http::forms::document::{self, Totals};
use crate::http::forms::reader::Reader;

/// The tax category, and its percent, that this service assumes while the authority's list of tax categories is not
/// available.
const STANDARD_CATEGORY: (&str, &str) = ("STANDARD_VAT", "7.5");

/// Reads the optional taxes. If the caller omits the taxes, returns taxes that are derived from the totals, because the
/// authority requires taxes. `currency` is the currency of the totals. Returns `None` if the taxes were sent, or if no
/// taxes can be derived.
pub(crate) fn derive_omitted_tax_total(
    reader: &mut Reader<'_>,
    totals: Option<Totals>,
    currency: Option<&str>,
) -> Option<Value> {
    let is_sent = reader.has("tax_total");
    reader
        .optional("tax_total")
        .objects(0, document::check_tax_total);
    if is_sent {
        return None;
    }
    let totals = totals?;
    let tax = totals
        .tax_inclusive
        .minus(totals.tax_exclusive)
        .filter(|tax| !tax.is_negative())?;
    let catalog = reader.catalog();
    let digits = catalog.currency_digits(currency.unwrap_or_default());
    let category = fitting_category(tax, totals.tax_exclusive, digits, catalog);
    let Some((id, percent)) = category else {
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

/// Returns the sentence of the fault if no percent fits. The sentence shows the tax that the standard category would
/// ask for.
fn unfitting_tax_sentence(tax: Amount, totals: Totals, catalog: &Catalog) -> String {
    let (standard_category, _) = STANDARD_CATEGORY;
    let expected_tax = catalog
        .tax_percent(standard_category)
        .percent_share(totals.tax_exclusive);
    let expected_tax = expected_tax.filter(|expected_tax| !expected_tax.is_zero());
    let expected_tax = expected_tax.map(|expected_tax| {
        format!(
            "; {standard_category} asks for {}",
            expected_tax.to_grouped_text()
        )
    });
    format!(
        "is required: tax_inclusive_amount − tax_exclusive_amount is {} − {} = {}, and no tax category has that tax{}",
        totals.tax_inclusive.to_grouped_text(),
        totals.tax_exclusive.to_grouped_text(),
        tax.to_grouped_text(),
        expected_tax.unwrap_or_default(),
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
    let percents_by_category = catalog.tax_percents_by_category();
    if percents_by_category.is_empty() {
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
    let fitting: Vec<_> = percents_by_category
        .into_iter()
        .filter(|(_, percent)| is_tax_at_percent(*percent, amount, tax, digits))
        .collect();
    let find_by_start = |word: &str| fitting.iter().find(|(id, _)| id.starts_with(word));
    let preferred = find_by_start("ZERO_VAT")
        .or_else(|| find_by_start(STANDARD_CATEGORY.0))
        .or_else(|| fitting.first());
    preferred.map(|(id, percent)| ((*id).to_owned(), *percent))
}

/// Returns true if `percent` of `amount` is `tax`, within the tolerance or rounded to this number of digits. The
/// rounding matters for a currency without hundredths, where it changes an amount by more than the tolerance. A tax of
/// zero is due at zero percent only.
fn is_tax_at_percent(percent: Amount, amount: Amount, tax: Amount, digits: u32) -> bool {
    if tax.is_zero() {
        percent.is_zero()
    } else {
        percent.percent_share(amount).is_some_and(|expected_tax| {
            expected_tax.is_within_tolerance(tax) || expected_tax.round_half_up(digits) == tax
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tax_is_its_percent_within_a_hundredth_or_rounded_to_the_currency() {
        for (percent, amount, tax, digits, expected) in [
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
            let is_tax = is_tax_at_percent(percent, amount, tax, digits);
            assert_eq!(is_tax, expected, "{tax} is {percent} % of {amount}");
        }
    }
}
