//! The totals of an invoice for a reader: each line, the tax of each category, and the sums. If the document states its
//! totals, these are used, because the authority signs them. Otherwise the totals are computed from the lines.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::domain::invoice::totals::net;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::money::Amount;
use crate::domain::reference::catalog::Catalog;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakdown {
    /// The amount of each line before tax, in the order of the lines; `None` if it is too large.
    pub lines: Vec<Option<Amount>>,
    pub net: Option<Amount>,
    pub taxes: Vec<TaxSubtotal>,
    pub payable: Amount,
}

/// The tax of one category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaxSubtotal {
    pub category: String,
    pub percent: Option<Amount>,
    pub base: Amount,
    pub tax: Amount,
}

impl Breakdown {
    pub fn from_invoice(invoice: &Invoice, catalog: &Catalog) -> Self {
        let digits = catalog.currency_digits(&invoice.currency);
        let shown = |amount: Amount| amount.round_half_up(digits).with_digits(digits);
        let lines: Vec<_> = invoice
            .lines
            .iter()
            .map(|line| line_amount(line).map(shown))
            .collect();
        let stated = invoice
            .extras
            .get("legal_monetary_total")
            .and_then(|totals| amount_field(totals, "tax_exclusive_amount"));
        let net =
            stated.or_else(|| Amount::sum(lines.iter().copied().collect::<Option<Vec<_>>>()?));
        let taxes = stated_taxes(&invoice.extras);
        let taxes = if taxes.is_empty() {
            computed_taxes(&invoice.lines, catalog)
        } else {
            taxes
        };
        Self {
            lines,
            net: net.map(shown),
            taxes: taxes
                .into_iter()
                .map(|part| TaxSubtotal {
                    base: shown(part.base),
                    tax: shown(part.tax),
                    ..part
                })
                .collect(),
            payable: shown(invoice.payment.payable),
        }
    }
}

fn line_amount(line: &Line) -> Option<Amount> {
    let stated = line
        .extras
        .get("line_extension_amount")
        .and_then(|value| Amount::deserialize(value).ok());
    stated.or_else(|| net(line))
}

fn amount_field(object: &Value, name: &str) -> Option<Amount> {
    Amount::deserialize(object.get(name)?).ok()
}

/// Returns the tax subtotals that the document states. Subtotals without amounts are left out.
fn stated_taxes(extras: &Map<String, Value>) -> Vec<TaxSubtotal> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let totals = list(extras.get("tax_total"));
    let subtotals = totals
        .iter()
        .flat_map(|total| list(total.get("tax_subtotal")));
    subtotals
        .filter_map(|subtotal| stated_tax(&subtotal))
        .collect()
}

fn stated_tax(subtotal: &Value) -> Option<TaxSubtotal> {
    let category = subtotal.get("tax_category")?;
    Some(TaxSubtotal {
        category: category
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        percent: amount_field(category, "percent"),
        base: amount_field(subtotal, "taxable_amount")?,
        tax: amount_field(subtotal, "tax_amount")?,
    })
}

/// Returns the tax of each category of the lines. A category whose sum is too large is left out.
fn computed_taxes(lines: &[Line], catalog: &Catalog) -> Vec<TaxSubtotal> {
    let mut bases: BTreeMap<&str, Option<Amount>> = BTreeMap::new();
    for line in lines {
        let base = bases
            .entry(&line.tax_category)
            .or_insert(Some(Amount::ZERO));
        *base = base
            .zip(line_amount(line))
            .and_then(|(sum, amount)| sum.plus(amount));
    }
    let parts = bases.into_iter().filter_map(|(category, base)| {
        let base = base?;
        let percent = catalog.tax_percent(category);
        let tax = percent.percent_of(base)?;
        Some(TaxSubtotal {
            category: category.to_owned(),
            percent: Some(percent),
            base,
            tax,
        })
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::civil::Date;
    use serde_json::json;

    use super::*;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::invoice::{Draft, InvoiceIdentity};
    use crate::domain::kernel::codes::{Category, DeclaredPaymentStatus};
    use crate::domain::kernel::ids::{CustomerId, InvoiceId, TaxpayerId};
    use crate::domain::party::{Address, CustomerDetails, InvoiceCustomer};
    use crate::domain::reference::catalog::ReferenceList;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        let list = json!([{ "code": "STANDARD_VAT", "percent": 7.5 }, { "code": "ZERO_VAT", "percent": 0 }]);
        catalog.load(ReferenceList::TaxCategories, &list);
        catalog
    }

    fn invoice(lines: Vec<Line>, extras: &Value) -> Invoice {
        let draft = Draft {
            invoice_no: "1".into(),
            irn: None,
            category: Category::B2B,
            invoice_type: "INVOICE".into(),
            invoice_date: Date::constant(2026, 1, 15),
            due_date: None,
            currency: "NGN".into(),
            customer: CustomerDetails {
                no: "C1".into(),
                name: "C".into(),
                email: "c@example.com".into(),
                tin: None,
                business_description: None,
                address: Address::default(),
                telephone: None,
            },
            lines,
            payable: 100.into(),
            declared: DeclaredPaymentStatus::Pending,
            extras: extras.as_object().cloned().unwrap_or_default(),
            batch_no: None,
        };
        let identity = InvoiceIdentity {
            id: InvoiceId(1),
            taxpayer_id: TaxpayerId(1),
            irn: Irn::parse("1-94AD90FB-20260115").unwrap(),
            customer: InvoiceCustomer {
                id: CustomerId(1),
                external_customer_no: "C1".into(),
                name: "C".into(),
                tin: None,
                email: "c@example.com".into(),
            },
            provisional_qr: String::new(),
        };
        draft.into_invoice(identity, Timestamp::UNIX_EPOCH).0
    }

    fn line(price: &str, tax: &str) -> Line {
        Line {
            unit_price: Amount::parse(price).unwrap(),
            tax_category: tax.into(),
            ..Line::sample()
        }
    }

    fn texts(breakdown: &Breakdown) -> Vec<String> {
        let part = |part: &TaxSubtotal| {
            let percent = part
                .percent
                .map(|percent| percent.to_string())
                .unwrap_or_default();
            format!("{} {percent}: {} of {}", part.category, part.tax, part.base)
        };
        breakdown.taxes.iter().map(part).collect()
    }

    #[test]
    fn without_stated_totals_each_category_has_the_tax_of_its_lines() {
        let lines = vec![
            line("100", "STANDARD_VAT"),
            line("50", "ZERO_VAT"),
            line("1", "STANDARD_VAT"),
        ];
        let found = Breakdown::from_invoice(&invoice(lines, &json!({})), &catalog());
        assert_eq!(
            texts(&found),
            [
                "STANDARD_VAT 7.5: 7.58 of 101.00",
                "ZERO_VAT 0: 0.00 of 50.00"
            ]
        );
        assert_eq!(found.net.unwrap().to_string(), "151.00");
        assert_eq!(found.lines[1].unwrap().to_string(), "50.00");
    }

    #[test]
    fn stated_totals_are_believed() {
        let extras = json!({
            "legal_monetary_total": { "tax_exclusive_amount": 99.5, "payable_amount": 107 },
            "tax_total": [{ "tax_amount": 7.5, "tax_subtotal": [{
                "taxable_amount": 100, "tax_amount": 7.5, "tax_category": { "id": "LOCAL", "percent": 7.5 },
            }] }],
        });
        let found = Breakdown::from_invoice(
            &invoice(vec![line("100", "STANDARD_VAT")], &extras),
            &catalog(),
        );
        assert_eq!(texts(&found), ["LOCAL 7.5: 7.50 of 100.00"]);
        assert_eq!(found.net.unwrap().to_string(), "99.50");
    }
}
