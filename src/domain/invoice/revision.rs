//! Update Invoice (spec.md) replaces the customer, the lines and some details of an invoice. Number, IRN, invoice date
//! and currency do not change. The payable is computed from the new lines.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use serde_json::{Map, Value};

use crate::domain::invoice::item::{Item, Items};
use crate::domain::invoice::{Invoice, Line};
use crate::domain::kernel::codes::{Category, ItemType, UniqueNoType};
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::kernel::ids::ItemId;
use crate::domain::money::Amount;
use crate::domain::party::{CustomerDetails, InvoiceCustomer};
use crate::domain::payment::Payment;
use crate::domain::reference::catalog::Catalog;

/// An update that has passed every rule of its form.
#[derive(Debug, Clone)]
pub struct Revision {
    pub category: Category,
    pub invoice_type: String,
    /// The IRN of the invoice that this invoice corrects, as the caller sent it.
    pub original: Option<String>,
    pub due_date: Date,
    pub note: Option<String>,
    pub customer: CustomerDetails,
    pub lines: Vec<RevisedLine>,
    /// Provides the percent of a tax category and the number of decimal digits of a currency.
    pub catalog: Arc<Catalog>,
}

/// A line of an update. It refers to a catalog item by `item_id`, or has at least a name, a type and a tax category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevisedLine {
    pub item_id: Option<ItemId>,
    pub item_name: Option<String>,
    pub item_no: Option<String>,
    pub item_type: Option<ItemType>,
    pub unit_price: Amount,
    pub quantity: Amount,
    pub price_unit: String,
    pub tax_category: Option<String>,
    pub product_category: Option<String>,
    pub service_category: Option<String>,
    pub discount_rate: Option<Amount>,
    pub discount_amount: Option<Amount>,
    pub description: Option<String>,
}

impl Revision {
    /// Fills in the missing fields of each line from its catalog item, or returns the faults of all lines.
    pub fn complete_lines(&self, items: &Items) -> Result<Vec<Line>, Faults> {
        let mut faults = Faults::default();
        let lines = self.lines.iter().enumerate();
        let complete = |(at, line): (usize, &RevisedLine)| {
            line.complete(items).map_err(|fault| {
                faults.push(Fault::field(
                    format!("lines.{at}.{}", fault.field),
                    fault.rule,
                ));
            })
        };
        let lines: Vec<_> = lines.map(complete).filter_map(Result::ok).collect();
        if faults.is_empty() {
            Ok(lines)
        } else {
            Err(faults)
        }
    }
}

/// A field of a line, and the rule that the field breaks.
#[derive(Debug)]
struct LineFault {
    field: &'static str,
    rule: FieldRule,
}

impl LineFault {
    fn new(field: &'static str, rule: FieldRule) -> Self {
        Self { field, rule }
    }

    fn for_missing(field: &'static str) -> Self {
        Self::new(field, FieldRule::Required)
    }
}

impl RevisedLine {
    /// Returns the complete line. Fields that the update does not state are taken from the item.
    fn complete(&self, items: &Items) -> Result<Line, LineFault> {
        let item = self.find_item(items)?;
        let said = |own: &Option<String>, of_item: Option<&String>| {
            own.clone().or_else(|| of_item.cloned())
        };
        let item_type = self.item_type.or(item.map(|item| item.item_type));
        let item_type = item_type.ok_or_else(|| LineFault::for_missing("item_type"))?;
        self.check_item_type(item, item_type)?;
        let name = said(&self.item_name, item.map(|item| &item.name));
        let tax_category = said(&self.tax_category, item.map(|item| &item.tax_category));
        Ok(Line {
            item_id: self.item_id,
            item_name: name.ok_or_else(|| LineFault::for_missing("item_name"))?,
            item_no: said(&self.item_no, item.and_then(|item| item.item_no.as_ref())),
            item_type,
            unit_price: self.unit_price,
            quantity: self.quantity,
            price_unit: self.price_unit.clone(),
            tax_category: tax_category.ok_or_else(|| LineFault::for_missing("tax_category"))?,
            product_category: said(
                &self.product_category,
                item.and_then(|item| item.product_category.as_ref()),
            ),
            service_category: said(
                &self.service_category,
                item.and_then(|item| item.service_category.as_ref()),
            ),
            discount_rate: self.discount_rate,
            discount_amount: self.discount_amount,
            extras: self.extras(),
        })
    }

    fn find_item<'i>(&self, items: &'i Items) -> Result<Option<&'i Item>, LineFault> {
        let Some(id) = self.item_id else {
            return Ok(None);
        };
        let item = items.get(id).ok_or_else(|| {
            LineFault::new(
                "item_id",
                FieldRule::must_be("exists", "the id of one of the account's items"),
            )
        })?;
        if item.has_category() {
            Ok(Some(item))
        } else {
            let value = "of an item that already carries a product or service category";
            Err(LineFault::new(
                "item_id",
                FieldRule::must_be("item_category", value),
            ))
        }
    }

    /// Refuses a line whose type differs from that of its item, and a product line with a service category or the
    /// reverse.
    fn check_item_type(&self, item: Option<&Item>, item_type: ItemType) -> Result<(), LineFault> {
        if item.is_some_and(|item| item.item_type != item_type) {
            return Err(LineFault::new(
                "item_type",
                FieldRule::must_be("item_type", "the type of the item"),
            ));
        }
        match item_type {
            ItemType::Product if self.service_category.is_some() => Err(LineFault::new(
                "service_category",
                FieldRule::other("prohibited", "is for SERVICE lines"),
            )),
            ItemType::Service if self.product_category.is_some() => Err(LineFault::new(
                "product_category",
                FieldRule::other("prohibited", "is for PRODUCT lines"),
            )),
            _ => Ok(()),
        }
    }

    fn extras(&self) -> Map<String, Value> {
        let description = self
            .description
            .clone()
            .map(|text| ("description".to_owned(), Value::String(text)));
        description.into_iter().collect()
    }
}

/// The parts of an invoice that a revision replaces.
#[derive(Debug, Clone)]
pub struct RevisedParts {
    pub customer: InvoiceCustomer,
    pub lines: Vec<Line>,
    pub payment: Payment,
}

/// The stored fields that an update removes, because each update sends them again, or because they are totals of the
/// old lines.
const REPLACED_EXTRAS: [&str; 7] = [
    "accounting_customer_party",
    "invoice_type_code",
    "legal_monetary_total",
    "note",
    "original_invoice_reference",
    "original_invoice_reference_type",
    "tax_total",
];

impl Invoice {
    /// Returns the invoice after an update. The caller must have checked that the invoice may be edited.
    #[must_use]
    pub fn revise(mut self, revision: &Revision, rewritten: RevisedParts, now: Timestamp) -> Self {
        self.extras
            .retain(|name, _| !REPLACED_EXTRAS.contains(&name.as_str()));
        self.extras.extend(revised_extras(revision));
        let old_due = self.due_date;
        for due in self.payment_due_dates_mut() {
            if old_due.is_some() && to_date(due) == old_due {
                *due = Value::from(revision.due_date.to_string());
            }
        }
        self.category = revision.category;
        self.invoice_type.clone_from(&revision.invoice_type);
        self.due_date = Some(revision.due_date);
        self.customer = rewritten.customer;
        self.lines = rewritten.lines;
        self.payment = rewritten.payment;
        self.updated_at = now;
        self.edited_at = Some(now);
        self
    }

    /// Returns the due dates of the means of payment that differ from the due date of the invoice.
    pub fn other_payment_due_dates(&self) -> Vec<Date> {
        let means = self.extras.get("payment_means").and_then(Value::as_array);
        let dates = means.into_iter().flatten();
        let dates = dates.filter_map(|means| to_date(means.get("payment_due_date")?));
        dates.filter(|date| Some(*date) != self.due_date).collect()
    }

    fn payment_due_dates_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        let means = self.extras.get_mut("payment_means");
        let means = means.and_then(Value::as_array_mut);
        let means = means.into_iter().flatten();
        means.filter_map(|means| means.get_mut("payment_due_date"))
    }
}

fn to_date(value: &Value) -> Option<Date> {
    value.as_str()?.parse().ok()
}

/// Returns the fields of the update that go into `extras`.
fn revised_extras(revision: &Revision) -> Map<String, Value> {
    let by_irn = revision
        .original
        .as_ref()
        .map(|_| UniqueNoType::Irn.to_string());
    let all = [
        ("invoice_type_code", Some(revision.invoice_type.clone())),
        ("original_invoice_reference", revision.original.clone()),
        ("original_invoice_reference_type", by_irn),
        ("note", revision.note.clone()),
    ];
    all.into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), Value::String(text?))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_item(id: i64) -> RevisedLine {
        RevisedLine {
            item_id: Some(ItemId(id)),
            item_name: None,
            item_no: None,
            item_type: None,
            unit_price: 5.into(),
            quantity: 2.into(),
            price_unit: "EA".into(),
            tax_category: None,
            product_category: None,
            service_category: None,
            discount_rate: None,
            discount_amount: None,
            description: Some("As before".into()),
        }
    }

    fn items() -> Items {
        let with = Line {
            product_category: Some("8471.30".into()),
            ..Line::sample()
        };
        let without = Line {
            item_no: Some("L-2".into()),
            ..Line::sample()
        };
        [
            Item::from_line(ItemId(1), &with),
            Item::from_line(ItemId(2), &without),
        ]
        .into_iter()
        .collect()
    }

    #[test]
    fn an_item_completes_its_line() {
        let line = by_item(1).complete(&items()).unwrap();
        assert_eq!(
            (line.item_id, line.item_name.as_str()),
            (Some(ItemId(1)), "Laptop")
        );
        assert_eq!(
            (line.item_no.as_deref(), line.product_category.as_deref()),
            (Some("L-1"), Some("8471.30"))
        );
        assert_eq!(
            (line.tax_category.as_str(), line.unit_price),
            ("STANDARD_VAT", 5.into())
        );
        assert_eq!(line.extras["description"], "As before");
        let named = RevisedLine {
            item_name: Some("Old laptop".into()),
            ..by_item(1)
        };
        assert_eq!(named.complete(&items()).unwrap().item_name, "Old laptop");
    }

    #[test]
    fn an_item_that_does_not_fit_is_refused() {
        let rule = |line: RevisedLine| {
            line.complete(&items())
                .map_err(|fault| (fault.field, fault.rule.id()))
                .unwrap_err()
        };
        assert_eq!(rule(by_item(3)), ("item_id", "exists"));
        assert_eq!(rule(by_item(2)), ("item_id", "item_category"));
        let service = RevisedLine {
            item_type: Some(ItemType::Service),
            ..by_item(1)
        };
        assert_eq!(rule(service), ("item_type", "item_type"));
        let other = RevisedLine {
            service_category: Some("6201".into()),
            ..by_item(1)
        };
        assert_eq!(rule(other), ("service_category", "prohibited"));
    }
}
