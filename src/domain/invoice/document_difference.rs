//! Compares a sent document with the stored invoice. A field that only one of them has counts as a difference if it
//! holds an amount, a value from which amounts are computed, or a tax number. Zero and empty values count as absent.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::invoice::Invoice;
use crate::domain::invoice::stored_document::party_field_names;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::domain::party::normal_form::is_same_tin;

/// Members that are not compared: data that the document does not take from the stored invoice, and descriptions of
/// parties and items.
const NOT_COMPARED: [&str; 12] = [
    "agent_tin",
    "business_description",
    "description",
    "email",
    "integrator_service_id",
    "invoice_reference",
    "item_description",
    "payment_status",
    "postal_address",
    "tax_currency_code",
    "tax_point_date",
    "telephone",
];
/// Members that count as a difference if only one of the documents has them: amounts, values from which amounts are
/// computed, and tax numbers. The members of an object are checked one by one, whatever the name of the object.
const COUNTED_ALONE: [&str; 26] = [
    "allowance_charge",
    "amount",
    "base_amount",
    "base_quantity",
    "beneficiary_tin",
    "discount_amount",
    "discount_rate",
    "fee_amount",
    "fee_rate",
    "invoice_line",
    "invoiced_quantity",
    "line_extension_amount",
    "other_taxes",
    "payable_amount",
    "percent",
    "price_amount",
    "tax_amount",
    "tax_exclusive_amount",
    "tax_inclusive_amount",
    "tax_subtotal",
    "tax_total",
    "taxable_amount",
    "tin",
    "total_amount",
    "vat_calculated",
    "vat_rate",
];
/// The members that this service computes for a full invoice that states no taxes by category.
const COMPUTED_TAXES: [&str; 3] = ["tax_amount", "taxable_amount", "vat_calculated"];
/// The members that this service computes for a standard invoice, which states only its payable.
const COMPUTED_AMOUNTS: [&str; 6] = [
    "base_amount",
    "line_extension_amount",
    "tax_amount",
    "tax_exclusive_amount",
    "taxable_amount",
    "vat_calculated",
];
/// The text for a value that a document does not have.
const ABSENT: &str = "absent";
/// The maximum number of differing fields whose values a warning shows.
const FIELDS_SHOWN_MAX: usize = 5;
/// The maximum number of characters of a value that a warning shows.
const VALUE_CHARS_SHOWN_MAX: usize = 60;
/// The maximum number of differences that are stored with a submission.
const KEPT_MAX: usize = 20;

/// The origin of the amounts of a stored invoice. The caller may have rounded differently than this service, so
/// computed amounts are compared with the tolerance of spec.md. Stated amounts must be equal to the last digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmountOrigin {
    /// The caller stated all amounts (Create Invoice, Full).
    Stated,
    /// The caller stated all amounts except the taxes by category (Create Invoice, Full).
    TaxesComputed,
    /// The caller stated quantities, prices and the payable (Create Invoice, Standard).
    Computed,
}

impl From<&Invoice> for AmountOrigin {
    fn from(invoice: &Invoice) -> Self {
        let has_taxes = stated_value(&invoice.extras, "tax_total").is_some();
        match (invoice.is_full(), has_taxes) {
            (true, true) => Self::Stated,
            (true, false) => Self::TaxesComputed,
            (false, _) => Self::Computed,
        }
    }
}

impl AmountOrigin {
    fn computed_member_names(self) -> &'static [&'static str] {
        match self {
            Self::Stated => &[],
            Self::TaxesComputed => &COMPUTED_TAXES,
            Self::Computed => &COMPUTED_AMOUNTS,
        }
    }
}

/// A field whose values differ, or that only one of the documents has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The dot path of the field in the document.
    pub path: String,
    /// The two values as text; `absent` if a document does not have the field.
    pub sent: String,
    pub stored: String,
}

/// The differences between a sent document and the document of the stored invoice, totals first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Differences(Vec<Difference>);

impl Differences {
    pub fn between(
        sent: &Map<String, Value>,
        stored: &Map<String, Value>,
        amounts: AmountOrigin,
    ) -> Self {
        let type_code = stored.get("invoice_type_code").and_then(Value::as_str);
        let mut comparison = Comparison {
            amounts,
            // The taxpayer is not compared, because its data comes from the profile and not from the invoice.
            taxpayer: party_field_names(type_code).taxpayer,
            found: Vec::new(),
        };
        comparison.compare_members("", sent, stored);
        let mut found = comparison.found;
        found.sort_by_key(|difference| !difference.path.starts_with("legal_monetary_total"));
        Self(found)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Difference> {
        self.0.iter()
    }

    /// Keeps only the first differences, as many as are stored with a submission.
    #[must_use]
    pub fn truncate_for_storage(mut self) -> Self {
        self.0.truncate(KEPT_MAX);
        self
    }

    /// Returns a fault for each difference, for an account that refuses differing documents.
    pub fn to_faults(&self) -> Faults {
        let faults = self.iter().map(|Difference { path, sent, stored }| {
            let sentence = format!("is {sent} here and {stored} in the stored invoice");
            Fault::field(path, FieldRule::other("stored_value", sentence))
        });
        faults.collect()
    }
}

/// A comparison in progress.
struct Comparison {
    amounts: AmountOrigin,
    /// The name of the member that holds the taxpayer.
    taxpayer: &'static str,
    found: Vec<Difference>,
}

impl Comparison {
    fn compare_members(
        &mut self,
        path: &str,
        sent: &Map<String, Value>,
        stored: &Map<String, Value>,
    ) {
        let only_stored = stored.keys().filter(|name| !sent.contains_key(*name));
        for name in sent.keys().chain(only_stored) {
            if name == self.taxpayer || NOT_COMPARED.contains(&name.as_str()) {
                continue;
            }
            let path = join_path(path, name);
            match (stated_value(sent, name), stated_value(stored, name)) {
                (Some(sent), Some(stored)) => self.compare(&path, name, sent, stored),
                (Some(sent), None) => {
                    self.compare_one_sided(&path, name, sent, |value| (value, ABSENT.to_owned()));
                }
                (None, Some(stored)) => {
                    self.compare_one_sided(&path, name, stored, |value| (ABSENT.to_owned(), value));
                }
                (None, None) => {}
            }
        }
    }

    fn compare(&mut self, path: &str, name: &str, sent: &Value, stored: &Value) {
        match (sent, stored) {
            (Value::Object(sent), Value::Object(stored)) => {
                self.compare_members(path, sent, stored);
            }
            (Value::Array(sent), Value::Array(stored)) if sent.len() == stored.len() => {
                for (at, (sent, stored)) in sent.iter().zip(stored).enumerate() {
                    self.compare(&join_path(path, &at.to_string()), name, sent, stored);
                }
            }
            _ if means_absent(name, sent) && means_absent(name, stored) => {}
            _ if self.is_same(name, sent, stored) => {}
            _ => self.add_difference(path, value_text(sent), value_text(stored)),
        }
    }

    /// Compares a value that only one document has. `sides` turns the text of the value into the texts for the sent and
    /// the stored document.
    fn compare_one_sided(
        &mut self,
        path: &str,
        name: &str,
        value: &Value,
        sides: fn(String) -> (String, String),
    ) {
        if let Value::Object(members) = value {
            for (name, value) in members {
                if !NOT_COMPARED.contains(&name.as_str()) {
                    self.compare_one_sided(&join_path(path, name), name, value, sides);
                }
            }
        } else if COUNTED_ALONE.contains(&name) && !means_absent(name, value) {
            let (sent, stored) = sides(value_text(value));
            self.add_difference(path, sent, stored);
        }
    }

    fn is_same(&self, name: &str, sent: &Value, stored: &Value) -> bool {
        match (sent, stored) {
            (Value::Number(_), Value::Number(_)) => {
                let amounts = to_amount(sent).zip(to_amount(stored));
                let is_rounded = self.amounts.computed_member_names().contains(&name);
                amounts.is_some_and(|(sent, stored)| {
                    sent == stored || is_rounded && sent.is_within_tolerance(stored)
                })
            }
            (Value::String(sent), Value::String(stored)) => {
                let is_number = matches!(name, "tin" | "beneficiary_tin");
                sent.trim().eq_ignore_ascii_case(stored.trim())
                    || is_number && is_same_tin(sent, stored)
            }
            _ => sent == stored,
        }
    }

    fn add_difference(&mut self, path: &str, sent: String, stored: String) {
        self.found.push(Difference {
            path: path.to_owned(),
            sent,
            stored,
        });
    }
}

/// Returns a member that is not null.
fn stated_value<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.get(name).filter(|value| !value.is_null())
}

/// True if the value means the same as an absent value.
fn means_absent(name: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        // `false` has a meaning: it says that an entry is an allowance and not a charge.
        Value::Bool(_) => false,
        Value::Number(_) if name == "base_quantity" => to_amount(value) == Some(1.into()),
        Value::Number(_) => to_amount(value).is_some_and(Amount::is_zero),
        Value::String(text) => text.trim().is_empty(),
        // A line counts even if its amount is zero, because it says what was sold.
        Value::Array(items) if name == "invoice_line" => items.is_empty(),
        Value::Array(items) => items.iter().all(|item| means_absent(name, item)),
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| COUNTED_ALONE.contains(&name.as_str()))
            .all(|(name, value)| means_absent(name, value)),
    }
}

fn to_amount(value: &Value) -> Option<Amount> {
    Amount::deserialize(value).ok()
}

fn join_path(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

impl fmt::Display for Differences {
    /// Writes the differences as a warning for the caller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the document is not the stored invoice: ")?;
        for (at, difference) in self.0.iter().take(FIELDS_SHOWN_MAX).enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let Difference { path, sent, stored } = difference;
            write!(f, "{separator}{path} is {sent} here and {stored} there")?;
        }
        let rest = self.0.len().saturating_sub(FIELDS_SHOWN_MAX);
        match rest {
            0 => Ok(()),
            1 => f.write_str(", and 1 more field"),
            _ => write!(f, ", and {rest} more fields"),
        }
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.chars().take(VALUE_CHARS_SHOWN_MAX).collect(),
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(_) => "an object".to_owned(),
        other => other
            .to_string()
            .chars()
            .take(VALUE_CHARS_SHOWN_MAX)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn warning(sent: &Value, stored: &Value) -> String {
        let object = |value: &Value| value.as_object().cloned().unwrap();
        let amounts = AmountOrigin::Stated;
        let found = Differences::between(&object(sent), &object(stored), amounts);
        if found.is_empty() {
            String::new()
        } else {
            found.to_string()
        }
    }

    #[test]
    fn a_difference_is_told_with_both_values() {
        let start = "the document is not the stored invoice: ";
        let totals = |payable: &str| json!({ "payable_amount": Amount::parse(payable).unwrap() });
        let cases = [
            (
                json!({ "note": "a", "irn": "X" }),
                json!({ "irn": "x" }),
                "",
            ),
            (
                json!({ "t": totals("10750") }),
                json!({ "t": totals("10750.000") }),
                "",
            ),
            (
                json!({ "t": totals("1075.01") }),
                json!({ "t": totals("1075.00") }),
                "t.payable_amount is 1075.01 here and 1075.00 there",
            ),
            (
                json!({ "payment_status": "PAID" }),
                json!({ "payment_status": "PENDING" }),
                "",
            ),
            (
                json!({ "legal_monetary_total": totals("10750"), "currency": "USD" }),
                json!({ "legal_monetary_total": totals("1075.00"), "currency": "NGN" }),
                "legal_monetary_total.payable_amount is 10750 here and 1075.00 there, currency is USD here and NGN there",
            ),
            (
                json!({ "invoice_line": [{}, {}] }),
                json!({ "invoice_line": [{}] }),
                "invoice_line is a list of 2 here and a list of 1 there",
            ),
            (
                json!({ "invoice_line": [{ "q": 1 }, { "q": 2 }] }),
                json!({ "invoice_line": [{ "q": 1 }, { "q": 3 }] }),
                "invoice_line.1.q is 2 here and 3 there",
            ),
        ];
        for (sent, stored, expected) in cases {
            let expected = if expected.is_empty() {
                String::new()
            } else {
                format!("{start}{expected}")
            };
            assert_eq!(warning(&sent, &stored), expected);
        }
    }

    /// Returns a document that has every member that counts alone, each with this value.
    fn document_with(name: &str, value: &Value) -> Value {
        let mut document = json!({
            "accounting_customer_party": { "party_name": "Retail" },
            "invoice_line": [{ "item": { "name": "Laptop" }, "price": { "price_unit": "EA" } }],
            "legal_monetary_total": {}, "tax_total": [{ "tax_subtotal": [{ "tax_category": { "id": "X" } }] }],
        });
        let place = match name {
            "tin" => "/accounting_customer_party",
            "price_amount" | "base_quantity" => "/invoice_line/0/price",
            "discount_amount"
            | "discount_rate"
            | "fee_amount"
            | "fee_rate"
            | "invoiced_quantity"
            | "line_extension_amount" => "/invoice_line/0",
            "payable_amount" | "tax_exclusive_amount" | "tax_inclusive_amount" => {
                "/legal_monetary_total"
            }
            "tax_amount" | "taxable_amount" => "/tax_total/0/tax_subtotal/0",
            "percent" => "/tax_total/0/tax_subtotal/0/tax_category",
            _ => "",
        };
        document.pointer_mut(place).unwrap()[name] = value.clone();
        document
    }

    #[test]
    fn a_field_of_one_document_counts_if_it_carries_money_or_says_who_a_party_is() {
        let plain = document_with("note", &json!("n"));
        for name in COUNTED_ALONE {
            let (value, voids) = match name {
                "allowance_charge" => (
                    json!([{ "charge_indicator": false, "amount": 500 }]),
                    vec![
                        json!([]),
                        json!([{ "charge_indicator": true, "amount": 0.00 }]),
                    ],
                ),
                "invoice_line" | "tax_total" | "tax_subtotal" => continue,
                "tin" | "beneficiary_tin" => (json!("12345678-0001"), vec![json!(" ")]),
                "base_quantity" => (json!(10), vec![json!(1), json!(1.0)]),
                _ => (json!(0.01), vec![json!(0), json!(0.00)]),
            };
            let only_one = document_with(name, &value);
            let sent = warning(&only_one, &plain);
            assert!(
                sent.contains(&format!("{name} is ")) && sent.ends_with("absent there"),
                "{sent}"
            );
            let stored = warning(&plain, &only_one);
            assert!(
                stored.contains(&format!("{name} is absent here and ")),
                "{stored}"
            );
            for void in voids.iter().chain([&Value::Null]) {
                let void = document_with(name, void);
                assert_eq!(warning(&void, &plain), "", "{name}");
                assert_eq!(warning(&plain, &void), "", "{name}");
                assert_ne!(warning(&only_one, &void), "", "{name}");
            }
            assert_eq!(warning(&only_one, &only_one), "", "{name}");
        }
        for name in ["tax_total", "accounting_customer_party"] {
            let mut other = document_with("tin", &json!("12345678-0001"));
            other["tax_total"][0]["tax_subtotal"][0]["tax_amount"] = json!(75);
            let mut without = other.clone();
            without.as_object_mut().unwrap().remove(name);
            assert!(warning(&other, &without).contains(name), "{name}");
            assert!(warning(&without, &other).contains(name), "{name}");
        }
        for (name, value) in [
            ("note", json!("x")),
            ("due_date", json!("2026-02-15")),
            ("email", json!("a@b")),
        ] {
            let other = document_with(name, &value);
            assert_eq!(
                warning(&other, &document_with("irn", &json!("I"))),
                "",
                "{name}"
            );
        }
    }

    #[test]
    fn an_allowance_is_not_a_charge() {
        let document = |is_charge: bool| json!({ "allowance_charge": [{ "charge_indicator": is_charge, "amount": 75 }] });
        for (sent, stored) in [(true, true), (false, false), (true, false), (false, true)] {
            let expected = if sent == stored {
                String::new()
            } else {
                format!(
                    "the document is not the stored invoice: allowance_charge.0.charge_indicator is {sent} here and {stored} there"
                )
            };
            assert_eq!(warning(&document(sent), &document(stored)), expected);
        }
    }

    #[test]
    fn only_amounts_that_this_service_rounds_may_be_a_cent_off() {
        for name in COUNTED_ALONE
            .iter()
            .filter(|name| name.contains("amount") || **name == "vat_calculated")
        {
            let document = |text: &str| {
                let value = json!({ *name: Amount::parse(text).unwrap() });
                value.as_object().cloned().unwrap()
            };
            let differs = |sent: &str, amounts| {
                !Differences::between(&document(sent), &document("10.00"), amounts).is_empty()
            };
            assert!(!differs("10.0", AmountOrigin::Stated), "{name}");
            assert!(differs("10.01", AmountOrigin::Stated), "{name}");
            for amounts in [AmountOrigin::TaxesComputed, AmountOrigin::Computed] {
                let is_computed = amounts.computed_member_names().contains(name);
                assert_eq!(differs("9.99", amounts), !is_computed, "{name}");
                assert!(differs("10.011", amounts), "{name}");
            }
        }
    }

    #[test]
    fn the_other_party_of_a_self_billed_document_is_its_supplier() {
        let document = |supplier: &str, customer: &str, code: &str| {
            json!({
                "invoice_type_code": code, "accounting_supplier_party": { "tin": supplier },
                "accounting_customer_party": { "tin": customer },
            })
        };
        let normal = |supplier, customer| document(supplier, customer, "381");
        let self_billed = |supplier, customer| document(supplier, customer, "385");
        assert_eq!(warning(&normal("1", "2"), &normal("9", "2")), "");
        assert_ne!(warning(&normal("1", "2"), &normal("1", "9")), "");
        assert_ne!(warning(&self_billed("1", "2"), &self_billed("9", "2")), "");
        assert_eq!(warning(&self_billed("1", "2"), &self_billed("1", "9")), "");
    }

    #[test]
    fn a_tax_number_may_be_spelled_differently() {
        let party = |tin: &str| json!({ "accounting_customer_party": { "tin": tin } });
        assert_eq!(warning(&party("12345678-0001"), &party("123456780001")), "");
        assert_ne!(
            warning(&party("12345678-0001"), &party("12345678-0002")),
            ""
        );
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let long = |sign: &str| -> Map<String, Value> {
            (0..50)
                .map(|at| (format!("f{at}"), json!(sign.repeat(500))))
                .collect()
        };
        let kept = Differences::between(&long("a"), &long("b"), AmountOrigin::Stated)
            .truncate_for_storage();
        assert_eq!(kept.iter().count(), 20);
        assert!(json!(kept).to_string().len() < 4_000);
        let fault = kept.to_faults().iter().next().unwrap().to_string();
        assert!(fault.contains("in the stored invoice"), "{fault}");
    }

    #[test]
    fn many_differences_are_counted() {
        let all = |value: u32| -> Value {
            (0..8)
                .map(|at| (format!("f{at}"), json!(value)))
                .collect::<Map<_, _>>()
                .into()
        };
        assert!(warning(&all(1), &all(5)).ends_with("f4 is 1 here and 5 there, and 3 more fields"));
    }
}
