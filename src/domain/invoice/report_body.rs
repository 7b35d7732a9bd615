//! Builds the body of Report (spec.md) from the document of a stored invoice. A report has one VAT rate, so there is no
//! report for an invoice with several rates.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::domain::kernel::codes::VatStatus;
use crate::domain::money::Amount;
use crate::domain::party::Taxpayer;

const DESCRIPTION_CHARS_MAX: usize = 255;

/// The error for an invoice whose lines have several VAT rates, or a rate for which a report has no word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "must have one VAT rate that a report can tell: send the whole report instead of the irn alone"
)]
pub struct NoSingleVatRate;

/// Builds the body of a Report request. `document` is the document of the invoice in the shape of Submit. Data that the
/// document lacks is left out.
pub fn report_body(
    document: &Map<String, Value>,
    taxpayer: &Taxpayer,
) -> Result<Map<String, Value>, NoSingleVatRate> {
    let document = Value::Object(document.clone());
    let vat = ReportedVat::from_document(&document)?;
    let mut body = Map::new();
    let copied = [
        ("irn", "/irn"),
        ("agent_tin", "/accounting_supplier_party/tin"),
        ("beneficiary_tin", "/accounting_customer_party/tin"),
        ("currency", "/document_currency_code"),
        ("transaction_date", "/issue_date"),
        ("base_amount", "/legal_monetary_total/tax_exclusive_amount"),
        ("total_amount", "/legal_monetary_total/tax_inclusive_amount"),
    ];
    for (name, pointer) in copied {
        if let Some(value) = document.pointer(pointer) {
            body.insert(name.to_owned(), value.clone());
        }
    }
    let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
    put("item_description", json!(item_names(&document)));
    put("vat_rate", json!(vat.rate));
    put("vat_calculated", json!(vat.tax));
    put("vat_status", json!(vat.status));
    put("integrator_service_id", json!(taxpayer.service_id));
    if !vat.other_taxes.is_zero() {
        put("other_taxes", json!(vat.other_taxes));
    }
    Ok(body)
}

/// Returns the names of the items, cut to the length that a report allows.
fn item_names(document: &Value) -> String {
    let lines = document.get("invoice_line").and_then(Value::as_array);
    let names = lines.into_iter().flatten();
    let names: Vec<_> = names
        .filter_map(|line| line.pointer("/item/name")?.as_str())
        .collect();
    names
        .join("; ")
        .chars()
        .take(DESCRIPTION_CHARS_MAX)
        .collect()
}

struct ReportedVat {
    status: VatStatus,
    rate: Amount,
    tax: Amount,
    other_taxes: Amount,
}

#[derive(Deserialize)]
struct Subtotal {
    tax_amount: Amount,
    tax_category: Category,
}

#[derive(PartialEq, Eq, Deserialize)]
struct Category {
    id: String,
    percent: Option<Amount>,
}

impl ReportedVat {
    fn from_document(document: &Value) -> Result<Self, NoSingleVatRate> {
        let subtotals = document.pointer("/tax_total/0/tax_subtotal");
        let subtotals: Vec<Subtotal> = subtotals
            .map(Vec::deserialize)
            .transpose()
            .map_err(|_| NoSingleVatRate)?
            .unwrap_or_default();
        let (vat, others): (Vec<_>, Vec<_>) = subtotals
            .into_iter()
            .partition(|part| vat_status(&part.tax_category.id).is_some());
        if others.iter().any(|part| is_vat(&part.tax_category.id)) {
            return Err(NoSingleVatRate);
        }
        let other_taxes = Amount::sum(others.iter().map(|part| part.tax_amount));
        let other_taxes = other_taxes.ok_or(NoSingleVatRate)?;
        let category = &vat.first().ok_or(NoSingleVatRate)?.tax_category;
        // A document may state one rate in several subtotals.
        if vat.iter().any(|part| part.tax_category != *category) {
            return Err(NoSingleVatRate);
        }
        let tax = Amount::sum(vat.iter().map(|part| part.tax_amount));
        Ok(Self {
            status: vat_status(&category.id).ok_or(NoSingleVatRate)?,
            rate: category.percent.unwrap_or_default(),
            tax: tax.ok_or(NoSingleVatRate)?,
            other_taxes,
        })
    }
}

/// True for a category of VAT, also for one for which a report has no word, such as `REDUCED_VAT`.
fn is_vat(category: &str) -> bool {
    category.ends_with("_VAT")
}

/// Returns the report's word for a category of VAT; `None` if a report has no word for it, or if it is a category of
/// another tax.
fn vat_status(category: &str) -> Option<VatStatus> {
    match category {
        "STANDARD_VAT" => Some(VatStatus::StandardVat),
        "ZERO_VAT" => Some(VatStatus::ZeroRated),
        "EXEMPTED" => Some(VatStatus::Exempt),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(taxes: &[(&str, &str)]) -> Value {
        let subtotal = |(category, tax): &(&str, &str)| {
            json!({
                "taxable_amount": 100, "tax_amount": Amount::parse(tax).unwrap(),
                "tax_category": { "id": category, "percent": 7.5 },
            })
        };
        let subtotals: Vec<_> = taxes.iter().map(subtotal).collect();
        json!({ "tax_total": [{ "tax_subtotal": subtotals }] })
    }

    #[test]
    fn a_report_needs_exactly_one_kind_of_vat() {
        type Case<'a> = (
            &'a [(&'a str, &'a str)],
            Option<(VatStatus, &'a str, &'a str)>,
        );
        let cases: [Case<'_>; 9] = [
            (
                &[("STANDARD_VAT", "7.5")],
                Some((VatStatus::StandardVat, "7.5", "0")),
            ),
            (&[("ZERO_VAT", "0")], Some((VatStatus::ZeroRated, "0", "0"))),
            (
                &[
                    ("STANDARD_VAT", "7.5"),
                    ("STAMP_DUTY", "1.25"),
                    ("SALES_TAX", "2"),
                ],
                Some((VatStatus::StandardVat, "7.5", "3.25")),
            ),
            (
                &[("STANDARD_VAT", "7.50"), ("STANDARD_VAT", "2.25")],
                Some((VatStatus::StandardVat, "9.75", "0")),
            ),
            (&[("STANDARD_VAT", "7.5"), ("ZERO_VAT", "0")], None),
            (&[("STANDARD_VAT", "7.5"), ("REDUCED_VAT", "5")], None),
            (&[("REDUCED_VAT", "5")], None),
            (&[("STAMP_DUTY", "1")], None),
            (&[], None),
        ];
        for (taxes, expected) in cases {
            let found = ReportedVat::from_document(&document(taxes)).ok();
            let found =
                found.map(|vat| (vat.status, vat.tax.to_string(), vat.other_taxes.to_string()));
            let expected =
                expected.map(|(status, tax, others)| (status, tax.into(), others.into()));
            assert_eq!(found, expected, "{taxes:?}");
        }
    }

    #[test]
    fn two_percents_of_one_category_are_not_one_rate() {
        for (percent, is_one) in [(json!(7.5), true), (json!(5), false), (Value::Null, false)] {
            let mut document = document(&[("STANDARD_VAT", "7.5"), ("STANDARD_VAT", "7.5")]);
            document["tax_total"][0]["tax_subtotal"][1]["tax_category"]["percent"] = percent;
            let found = ReportedVat::from_document(&document);
            assert_eq!(found.is_ok(), is_one, "{document}");
        }
    }

    #[test]
    fn the_names_of_many_items_are_cut() {
        let lines = vec![json!({ "item": { "name": "Ọjà".repeat(30) } }); 9];
        let text = item_names(&json!({ "invoice_line": lines }));
        assert_eq!(text.chars().count(), DESCRIPTION_CHARS_MAX);
    }
}
