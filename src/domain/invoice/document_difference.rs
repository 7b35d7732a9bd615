//! The fields in which a sent document says something else than the stored invoice.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::money::Amount;
use crate::domain::party::normal_form::is_same_tin;

/// Members that are not compared: what the document of a stored invoice does not take from the invoice itself, and how a
/// party or an item is described.
const NOT_COMPARED: [&str; 13] = [
    "accounting_supplier_party",
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
/// A warning tells both values of this many fields.
const FIELDS_SHOWN_MAX: usize = 5;
/// A value is shown with at most this many characters.
const VALUE_CHARS_SHOWN_MAX: usize = 60;
/// This many differences are kept with a submission.
const KEPT_MAX: usize = 20;

/// A field that both documents have, with two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The dot path of the field in the document.
    pub path: String,
    /// The two values as a person reads them.
    pub sent: String,
    pub stored: String,
}

/// The differences between a sent document and the document of the stored invoice, totals first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Differences(Vec<Difference>);

impl Differences {
    /// Compares the fields that both documents have. Amounts are equal within the tolerance of spec.md.
    pub fn between(sent: &Map<String, Value>, stored: &Map<String, Value>) -> Self {
        let mut found = Self::default();
        found.compare_members("", sent, stored);
        found
            .0
            .sort_by_key(|difference| !difference.path.starts_with("legal_monetary_total"));
        found
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Difference> {
        self.0.iter()
    }

    /// Returns the first of them, as many as are kept with a submission.
    #[must_use]
    pub fn first(mut self) -> Self {
        self.0.truncate(KEPT_MAX);
        self
    }

    /// Returns a fault for each difference, for an account that accepts none.
    pub fn to_faults(&self) -> Faults {
        let faults = self.iter().map(|Difference { path, sent, stored }| {
            let sentence = format!("is {sent} here and {stored} in the stored invoice");
            Fault::field(path, FieldRule::other("stored_value", sentence))
        });
        faults.collect()
    }

    fn compare_members(
        &mut self,
        path: &str,
        sent: &Map<String, Value>,
        stored: &Map<String, Value>,
    ) {
        for (name, sent) in sent {
            let Some(stored) = stored.get(name) else {
                continue;
            };
            if !NOT_COMPARED.contains(&name.as_str()) && !is_same_number(name, sent, stored) {
                self.compare(&join_path(path, name), sent, stored);
            }
        }
    }

    fn compare(&mut self, path: &str, sent: &Value, stored: &Value) {
        match (sent, stored) {
            (Value::Object(sent), Value::Object(stored)) => {
                self.compare_members(path, sent, stored);
            }
            (Value::Array(sent), Value::Array(stored)) if sent.len() == stored.len() => {
                for (at, (sent, stored)) in sent.iter().zip(stored).enumerate() {
                    self.compare(&join_path(path, &at.to_string()), sent, stored);
                }
            }
            _ if is_same(sent, stored) => {}
            _ => self.0.push(Difference {
                path: path.to_owned(),
                sent: value_text(sent),
                stored: value_text(stored),
            }),
        }
    }
}

fn join_path(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// True if a member is a tax number in two spellings.
fn is_same_number(name: &str, sent: &Value, stored: &Value) -> bool {
    let texts = sent.as_str().zip(stored.as_str());
    matches!(name, "tin" | "beneficiary_tin")
        && texts.is_some_and(|(sent, stored)| is_same_tin(sent, stored))
}

fn is_same(sent: &Value, stored: &Value) -> bool {
    match (sent, stored) {
        (Value::Number(_), Value::Number(_)) => {
            let amounts = Amount::deserialize(sent)
                .ok()
                .zip(Amount::deserialize(stored).ok());
            amounts.is_some_and(|(sent, stored)| sent.is_about(stored))
        }
        (Value::String(sent), Value::String(stored)) => {
            sent.trim().eq_ignore_ascii_case(stored.trim())
        }
        _ => sent == stored,
    }
}

impl fmt::Display for Differences {
    /// Writes a warning for the caller.
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
        let found = Differences::between(&object(sent), &object(stored));
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
                json!({ "t": totals("10.01") }),
                json!({ "t": totals("10") }),
                "",
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
        let kept = Differences::between(&long("a"), &long("b")).first();
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
