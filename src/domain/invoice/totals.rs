//! Computes the payable of an invoice for a caller that did not send it: the sum of its lines (see `line_terms`), plus
//! tax. Only the sum is rounded, half up to the digits of the currency.

use serde_json::{Map, Value};

use crate::domain::invoice::Line;
use crate::domain::invoice::calculation_terms;
use crate::domain::invoice::line_terms::LineTerms;
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

/// The error for lines whose total is too large for an `Amount`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the total of the lines is too large")]
pub struct TotalTooLarge;

/// Returns the total of the lines with tax, rounded to the digits of the currency.
pub fn payable_amount(
    lines: &[Line],
    currency: &str,
    catalog: &Catalog,
) -> Result<Amount, TotalTooLarge> {
    let sum = lines.iter().try_fold(Amount::ZERO, |sum, line| {
        let net = net(line)?;
        let gross = net.plus(catalog.tax_percent(&line.tax_category).percent_share(net)?)?;
        sum.plus(gross)
    });
    let sum = sum.ok_or(TotalTooLarge)?;
    let digits = catalog.currency_digits(currency);
    check_size(sum.round_half_up(digits).with_digits(digits))
}

/// Returns the total of the lines with the charges and allowances on the whole document, as `extras` states them. It is
/// negative if the allowances are larger.
pub fn add_charges(gross: Amount, extras: &Map<String, Value>) -> Result<Amount, TotalTooLarge> {
    let total = gross.plus(document_charges(extras)?);
    check_size(total.ok_or(TotalTooLarge)?)
}

/// Returns the total. Fails if it has more digits than a caller may send, because the invoice could not be submitted.
fn check_size(total: Amount) -> Result<Amount, TotalTooLarge> {
    Amount::parse(&total.to_string()).map_err(|_| TotalTooLarge)
}

/// Returns the charges less the allowances on the whole document, as `extras` states them.
pub fn document_charges(extras: &Map<String, Value>) -> Result<Amount, TotalTooLarge> {
    let charges = calculation_terms::document_charges(extras);
    charges.map(|charges| charges.sum).ok_or(TotalTooLarge)
}

/// Returns the amount of a line after discounts and fees and before tax; `None` if it is too large.
pub(crate) fn net(line: &Line) -> Option<Amount> {
    LineTerms::from(line).net()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::reference::catalog::ReferenceList;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        catalog.load(
            ReferenceList::TaxCategories,
            &json!([{ "code": "STANDARD_VAT", "percent": 7.5 }, { "code": "ZERO_VAT", "percent": 0 }]),
        );
        catalog.load(
            ReferenceList::Currencies,
            &json!([{ "code": "JPY", "decimal_digits": 0 }, { "code": "NGN", "decimal_digits": 2 }]),
        );
        catalog
    }

    fn line(quantity: &str, price: &str, tax: &str) -> Line {
        Line {
            quantity: Amount::parse(quantity).unwrap(),
            unit_price: Amount::parse(price).unwrap(),
            tax_category: tax.to_owned(),
            ..Line::sample()
        }
    }

    #[test]
    fn tax_is_added_and_the_total_rounded_half_up() {
        let lines = [
            line("2", "500.00", "STANDARD_VAT"),
            line("1", "0.1", "STANDARD_VAT"),
        ];
        assert_eq!(
            payable_amount(&lines, "NGN", &catalog())
                .unwrap()
                .to_string(),
            "1075.11"
        );
        assert_eq!(
            payable_amount(&lines, "JPY", &catalog())
                .unwrap()
                .to_string(),
            "1075"
        );
        let tenths = [line("1", "0.1", "ZERO_VAT"), line("1", "0.2", "ZERO_VAT")];
        assert_eq!(
            payable_amount(&tenths, "NGN", &catalog())
                .unwrap()
                .to_string(),
            "0.30"
        );
        let half = [line("1", "0.005", "ZERO_VAT")];
        assert_eq!(
            payable_amount(&half, "NGN", &catalog())
                .unwrap()
                .to_string(),
            "0.01"
        );
    }

    #[test]
    fn discounts_come_off_before_tax_and_stop_at_zero() {
        let mut discounted = line("1", "100", "ZERO_VAT");
        discounted.discount_rate = Some(10.into());
        discounted.discount_amount = Some(15.into());
        assert_eq!(
            payable_amount(&[discounted.clone()], "NGN", &catalog())
                .unwrap()
                .to_string(),
            "75.00"
        );
        discounted.discount_amount = Some(500.into());
        let beside_another = [line("1", "10", "ZERO_VAT"), discounted.clone()];
        assert_eq!(
            payable_amount(&beside_another, "NGN", &catalog())
                .unwrap()
                .to_string(),
            "10.00"
        );
        assert_eq!(
            payable_amount(&[discounted], "NGN", &catalog()).unwrap(),
            Amount::ZERO
        );
    }

    #[test]
    fn a_total_beyond_the_limit_is_refused() {
        let lines = [line("999999999999999", "999999999999999", "ZERO_VAT")];
        assert_eq!(
            payable_amount(&lines, "NGN", &catalog()),
            Err(TotalTooLarge)
        );
        let amount = |digits: &str| Amount::parse(digits).unwrap();
        let charge = |digits: &str, is_charge: bool| json!({ "charge_indicator": is_charge, "amount": amount(digits) });
        let largest = "999999999999999";
        let cases = [
            (largest, vec![], Ok(amount(largest))),
            (largest, vec![charge("1", true)], Err(TotalTooLarge)),
            (
                largest,
                vec![charge("1", true), charge("1", false)],
                Ok(amount(largest)),
            ),
            (
                "1",
                vec![charge(largest, true), charge("0.5", true)],
                Err(TotalTooLarge),
            ),
            ("1", vec![charge("1.5", false)], Ok(amount("-0.5"))),
        ];
        for (gross, charges, expected) in cases {
            let mut extras = Map::new();
            extras.insert("allowance_charge".to_owned(), Value::Array(charges));
            assert_eq!(
                add_charges(amount(gross), &extras),
                expected,
                "{gross} {extras:?}"
            );
        }
    }
}
