//! The amounts of an invoice: the amount of each line, the tax of each category, and the totals. Totals that the
//! document states are used, because the caller computed with them. Otherwise the amounts follow from the lines and are
//! rounded so that they add up to the payable.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::domain::invoice::totals::{TotalTooLarge, document_charges, net};
use crate::domain::invoice::{Draft, Invoice, Line};
use crate::domain::money::{Amount, TOLERANCE, apportion};
use crate::domain::reference::catalog::Catalog;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breakdown {
    /// The amount of each line after discounts and before tax, in the order of the lines.
    pub lines: Vec<Amount>,
    pub totals: DocumentTotals,
    pub taxes: Vec<TaxSubtotal>,
}

/// The totals of an invoice, under the names that spec.md gives them (`legal_monetary_total`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct DocumentTotals {
    pub line_extension_amount: Amount,
    pub tax_exclusive_amount: Amount,
    pub tax_inclusive_amount: Amount,
    pub payable_amount: Amount,
}

/// The tax of one category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaxSubtotal {
    pub category: String,
    pub percent: Option<Amount>,
    pub base: Amount,
    pub tax: Amount,
}

/// The parts of a document from which its amounts follow.
#[derive(Debug, Clone, Copy)]
struct AmountSources<'a> {
    lines: &'a [Line],
    extras: &'a Map<String, Value>,
    currency: &'a str,
    payable: Amount,
}

impl Breakdown {
    /// Returns the amounts of an invoice. Fails if a total is too large, which the forms prevent.
    pub fn from_invoice(invoice: &Invoice, catalog: &Catalog) -> Result<Self, TotalTooLarge> {
        let parts = AmountSources {
            lines: &invoice.lines,
            extras: &invoice.extras,
            currency: &invoice.currency,
            payable: invoice.payment.payable,
        };
        Self::from_parts(parts, catalog)
    }

    /// Returns the amounts that an invoice of this draft will have.
    pub fn from_draft(draft: &Draft, catalog: &Catalog) -> Result<Self, TotalTooLarge> {
        let parts = AmountSources {
            lines: &draft.lines,
            extras: &draft.extras,
            currency: &draft.currency,
            payable: draft.payable,
        };
        Self::from_parts(parts, catalog)
    }

    fn from_parts(parts: AmountSources<'_>, catalog: &Catalog) -> Result<Self, TotalTooLarge> {
        let digits = catalog.currency_digits(parts.currency);
        let stated = parts.extras.get("legal_monetary_total");
        let stated = stated.and_then(|totals| DocumentTotals::deserialize(totals).ok());
        let found = match stated {
            Some(totals) => Self::from_stated(parts, totals, catalog),
            None => Self::from_lines(parts, digits, catalog),
        };
        Ok(found.ok_or(TotalTooLarge)?.with_digits(digits))
    }

    /// Uses the totals that the document states. If it states no taxes, or not all of them, the taxes are computed from
    /// its lines.
    fn from_stated(
        parts: AmountSources<'_>,
        totals: DocumentTotals,
        catalog: &Catalog,
    ) -> Option<Self> {
        let lines: Vec<_> = parts.lines.iter().map(line_amount).collect::<Option<_>>()?;
        let mut taxes = stated_taxes(parts.extras, catalog.currency_digits(parts.currency));
        if taxes.is_empty() {
            taxes = taxes_by_category(parts.lines, &lines, catalog, line_tax)?;
        }
        Some(Self {
            lines,
            totals,
            taxes,
        })
    }

    /// Rounds the amounts of the lines and the taxes so that they add up exactly to the payable without the charges and
    /// allowances of the document. Each amount is less than one unit of the currency's last digit away from its exact
    /// value.
    fn from_lines(parts: AmountSources<'_>, digits: u32, catalog: &Catalog) -> Option<Self> {
        let exact: Vec<_> = parts.lines.iter().map(net).collect::<Option<_>>()?;
        let taxes = taxes_by_category(parts.lines, &exact, catalog, |_| None)?;
        let before_tax = Amount::sum(exact.iter().copied())?.round_half_up(digits);
        let payable = parts.payable;
        let with_tax = payable.minus(document_charges(parts.extras).ok()?)?;
        let lines = apportion(before_tax, &exact, digits)?;
        let exact_taxes: Vec<_> = taxes.iter().map(|part| part.tax).collect();
        let rounded_taxes = apportion(with_tax.minus(before_tax)?, &exact_taxes, digits)?;
        let bases = taxes_by_category(parts.lines, &lines, catalog, |_| None)?;
        let taxes = bases.into_iter().zip(rounded_taxes);
        Some(Self {
            taxes: taxes
                .map(|(part, tax)| TaxSubtotal { tax, ..part })
                .collect(),
            totals: DocumentTotals {
                line_extension_amount: before_tax,
                tax_exclusive_amount: before_tax,
                tax_inclusive_amount: with_tax,
                payable_amount: payable,
            },
            lines,
        })
    }

    /// Gives every amount at least the number of digits of the currency. No value changes.
    fn with_digits(mut self, digits: u32) -> Self {
        let totals = &mut self.totals;
        let amounts = self.lines.iter_mut();
        let amounts = amounts.chain([
            &mut totals.line_extension_amount,
            &mut totals.tax_exclusive_amount,
            &mut totals.tax_inclusive_amount,
            &mut totals.payable_amount,
        ]);
        for amount in amounts {
            *amount = amount.with_digits(digits);
        }
        for part in &mut self.taxes {
            part.base = part.base.with_digits(digits);
            part.tax = part.tax.with_digits(digits);
        }
        self
    }

    /// Returns the sum of the taxes; `None` if it is too large.
    pub fn tax(&self) -> Option<Amount> {
        Amount::sum(self.taxes.iter().map(|part| part.tax))
    }
}

fn line_amount(line: &Line) -> Option<Amount> {
    amount_field(&line.extras, "line_extension_amount").or_else(|| net(line))
}

/// Returns the tax that the caller stated for a line.
fn line_tax(line: &Line) -> Option<Amount> {
    amount_field(&line.extras, "total_tax")
}

fn amount_field(object: &Map<String, Value>, name: &str) -> Option<Amount> {
    Amount::deserialize(object.get(name)?).ok()
}

/// Returns the tax subtotals that the document states. Subtotals without amounts are left out. Returns an empty list if
/// the subtotals of a tax total do not add up to it, because some are missing.
fn stated_taxes(extras: &Map<String, Value>, digits: u32) -> Vec<TaxSubtotal> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let mut taxes = Vec::new();
    for total in list(extras.get("tax_total")) {
        let subtotals = list(total.get("tax_subtotal"));
        let parts: Vec<_> = subtotals
            .iter()
            .filter_map(|subtotal| stated_tax(subtotal.as_object()?))
            .collect();
        if !has_all_subtotals(&total, &parts, digits) {
            return Vec::new();
        }
        taxes.extend(parts);
    }
    taxes
}

/// True if the subtotals of a tax total add up to it, or if the document states only one of the two.
fn has_all_subtotals(total: &Value, parts: &[TaxSubtotal], digits: u32) -> bool {
    let members = total.as_object();
    let stated = members.and_then(|total| amount_field(total, "tax_amount"));
    let sum = Amount::sum(parts.iter().map(|part| part.tax));
    let tolerance = TOLERANCE.max(Amount::smallest_amount(digits));
    parts.is_empty()
        || stated
            .zip(sum)
            .is_none_or(|(stated, sum)| sum.is_within(tolerance, stated))
}

fn stated_tax(subtotal: &Map<String, Value>) -> Option<TaxSubtotal> {
    let category = subtotal.get("tax_category")?.as_object()?;
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

/// Returns the unrounded tax of each category. `amounts` holds the amount of each line. A line has the tax that
/// `stated` returns for it, otherwise the percent of its category.
fn taxes_by_category(
    lines: &[Line],
    amounts: &[Amount],
    catalog: &Catalog,
    stated: fn(&Line) -> Option<Amount>,
) -> Option<Vec<TaxSubtotal>> {
    let mut parts: BTreeMap<&str, TaxSubtotal> = BTreeMap::new();
    for (line, amount) in lines.iter().zip(amounts) {
        let category = line.tax_category.as_str();
        let percent = catalog.tax_percent(category);
        let part = parts.entry(category).or_insert_with(|| TaxSubtotal {
            category: category.to_owned(),
            percent: Some(percent),
            base: Amount::ZERO,
            tax: Amount::ZERO,
        });
        let tax = match stated(line) {
            Some(tax) => tax,
            None => percent.percent_share(*amount)?,
        };
        part.base = part.base.plus(*amount)?;
        part.tax = part.tax.plus(tax)?;
    }
    Some(parts.into_values().collect())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::civil::Date;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::domain::invoice::irn::Irn;
    use crate::domain::invoice::{Draft, InvoiceIdentity, totals};
    use crate::domain::kernel::codes::{Category, DeclaredPaymentStatus};
    use crate::domain::kernel::ids::{CustomerId, InvoiceId, TaxpayerId};
    use crate::domain::party::{Address, CustomerDetails, InvoiceCustomer};
    use crate::domain::reference::catalog::ReferenceList;

    fn catalog() -> Catalog {
        let mut catalog = Catalog::default();
        let list = json!([{ "code": "STANDARD_VAT", "percent": 7.5 }, { "code": "ZERO_VAT", "percent": 0 },
            { "code": "REDUCED_VAT", "percent": 5 }]);
        catalog.load(ReferenceList::TaxCategories, &list);
        catalog
    }

    fn invoice(lines: Vec<Line>, extras: &Value) -> Invoice {
        let payable = totals::payable_amount(&lines, "NGN", &catalog()).unwrap();
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
            payable,
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
        let invoice = invoice(lines, &json!({}));
        let found = Breakdown::from_invoice(&invoice, &catalog()).unwrap();
        assert_eq!(
            texts(&found),
            [
                "STANDARD_VAT 7.5: 7.58 of 101.00",
                "ZERO_VAT 0: 0.00 of 50.00"
            ]
        );
        assert_eq!(found.totals.tax_exclusive_amount.to_string(), "151.00");
        assert_eq!(found.lines[1].to_string(), "50.00");
    }

    #[test]
    fn charges_of_the_document_are_no_tax() {
        let extras = json!({ "allowance_charge": [
            { "charge_indicator": false, "amount": 100 }, { "charge_indicator": true, "amount": 30 },
        ] });
        let mut invoice = invoice(vec![line("1000", "STANDARD_VAT")], &extras);
        invoice.payment.payable = Amount::parse("1005.00").unwrap();
        let found = Breakdown::from_invoice(&invoice, &catalog()).unwrap();
        assert_eq!(texts(&found), ["STANDARD_VAT 7.5: 75.00 of 1000.00"]);
        let totals = found.totals;
        assert_eq!(totals.tax_inclusive_amount.to_string(), "1075.00");
        assert_eq!(totals.payable_amount.to_string(), "1005.00");
    }

    #[test]
    fn stated_totals_are_believed() {
        let extras = json!({
            "legal_monetary_total": {
                "line_extension_amount": 100, "tax_exclusive_amount": 99.5, "tax_inclusive_amount": 107,
                "payable_amount": 107,
            },
            "tax_total": [{ "tax_amount": 7.5, "tax_subtotal": [{
                "taxable_amount": 100, "tax_amount": 7.5, "tax_category": { "id": "LOCAL", "percent": 7.5 },
            }] }],
        });
        let invoice = invoice(vec![line("100", "STANDARD_VAT")], &extras);
        let found = Breakdown::from_invoice(&invoice, &catalog()).unwrap();
        assert_eq!(texts(&found), ["LOCAL 7.5: 7.50 of 100.00"]);
        assert_eq!(found.totals.tax_exclusive_amount.to_string(), "99.50");
    }

    #[test]
    fn without_stated_taxes_those_of_the_lines_count() {
        let mut taxed = line("100", "STANDARD_VAT");
        taxed.extras.insert("total_tax".into(), json!(7.49));
        let extras = json!({ "legal_monetary_total": {
            "line_extension_amount": 100, "tax_exclusive_amount": 100, "tax_inclusive_amount": 107.49,
            "payable_amount": 107.49,
        } });
        let found = Breakdown::from_invoice(&invoice(vec![taxed], &extras), &catalog()).unwrap();
        assert_eq!(texts(&found), ["STANDARD_VAT 7.5: 7.49 of 100.00"]);
    }

    #[test]
    fn subtotals_that_are_not_the_whole_tax_give_way_to_the_taxes_of_the_lines() {
        let taxed = |price: &str, category: &str, tax: &str| {
            let mut line = line(price, category);
            let tax = Amount::parse(tax).unwrap();
            line.extras.insert("total_tax".into(), json!(tax));
            line
        };
        let stated: &[&str] = &["LOCAL 7.5: 7.50 of 100.00"];
        let from_lines: &[&str] = &[
            "REDUCED_VAT 5: 2.50 of 50.00",
            "STANDARD_VAT 7.5: 7.50 of 100.00",
        ];
        for (tax, expected) in [
            (json!(7.5), stated),
            (json!(7.51), stated),
            (Value::Null, stated),
            (json!(10), from_lines),
            (json!(7.52), from_lines),
        ] {
            let extras = json!({
                "legal_monetary_total": {
                    "line_extension_amount": 150, "tax_exclusive_amount": 150, "tax_inclusive_amount": 160,
                    "payable_amount": 160,
                },
                "tax_total": [{ "tax_amount": tax, "tax_subtotal": [{
                    "taxable_amount": 100, "tax_amount": 7.5, "tax_category": { "id": "LOCAL", "percent": 7.5 },
                }] }],
            });
            let lines = vec![
                taxed("100", "STANDARD_VAT", "7.5"),
                taxed("50", "REDUCED_VAT", "2.5"),
            ];
            let found = Breakdown::from_invoice(&invoice(lines, &extras), &catalog()).unwrap();
            assert_eq!(texts(&found), expected, "{tax}");
        }
    }

    proptest! {
        /// Whatever the lines are, the rounded parts add up to the payable without a hundredth left over.
        #[test]
        fn the_parts_add_up_exactly(
            lines in prop::collection::vec((0_i64..9_999_999, 1_i64..99_999, 0_i64..10_000, any::<bool>()), 1..9),
        ) {
            let thousandths = |value: i64| Amount::parse(&format!("{}.{:03}", value / 1_000, value % 1_000)).unwrap();
            let lines: Vec<_> = lines
                .into_iter()
                .map(|(price, quantity, rate, standard)| Line {
                    quantity: thousandths(quantity),
                    unit_price: thousandths(price),
                    discount_rate: Some(thousandths(rate)),
                    tax_category: if standard { "STANDARD_VAT" } else { "REDUCED_VAT" }.into(),
                    ..Line::sample()
                })
                .collect();
            let invoice = invoice(lines, &json!({}));
            let found = Breakdown::from_invoice(&invoice, &catalog()).unwrap();
            let totals = found.totals;
            prop_assert_eq!(totals.payable_amount, invoice.payment.payable);
            prop_assert_eq!(Amount::sum(found.lines.iter().copied()), Some(totals.line_extension_amount));
            prop_assert_eq!(totals.tax_exclusive_amount.plus(found.tax().unwrap()), Some(totals.payable_amount));
            prop_assert_eq!(Amount::sum(found.taxes.iter().map(|part| part.base)), Some(totals.tax_exclusive_amount));
            for (rounded, line) in found.lines.iter().zip(&invoice.lines) {
                prop_assert!(rounded.is_within_tolerance(net(line).unwrap()), "{rounded}");
            }
            for part in &found.taxes {
                let due = part.percent.unwrap().percent_share(part.base).unwrap();
                prop_assert!(part.tax.minus(due).unwrap() <= Amount::parse("0.02").unwrap(), "{part:?}");
            }
        }
    }
}
