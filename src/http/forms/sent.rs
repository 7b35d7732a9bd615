//! A body as the authority takes it: the fields as they were given, without the unknown and the empty ones.

use serde_json::{Map, Value, json};

use crate::domain::codes::{Category, DeclaredPaymentStatus};

/// The authority takes countries in capital letters only.
const COUNTRIES: [&str; 2] = [
    "/accounting_supplier_party/postal_address/country",
    "/accounting_customer_party/postal_address/country",
];

/// `unknown` are the paths of the fields that no form asked for.
pub(crate) fn sent(body: &Map<String, Value>, unknown: &[Vec<String>]) -> Value {
    let mut document = Value::Object(body.clone());
    for steps in unknown {
        remove(&mut document, steps);
    }
    as_read(&mut document);
    for country in COUNTRIES {
        if let Some(Value::String(code)) = document.pointer_mut(country) {
            code.make_ascii_uppercase();
        }
    }
    document
}

/// The authority's names for a category and a payment status.
pub(crate) fn rename(
    fields: &mut Map<String, Value>,
    category: Option<Category>,
    status: Option<DeclaredPaymentStatus>,
) {
    fields.remove("invoice_category");
    if let Some(category) = category {
        fields.insert("invoice_kind".to_owned(), json!(category));
    }
    if let Some(status) = status {
        fields.insert("payment_status".to_owned(), json!(status.reads_as()));
    }
}

fn remove(value: &mut Value, steps: &[String]) {
    match (value, steps) {
        (Value::Object(fields), [last]) => drop(fields.remove(last)),
        (Value::Object(fields), [first, rest @ ..]) => {
            if let Some(inner) = fields.get_mut(first) {
                remove(inner, rest);
            }
        }
        (Value::Array(items), [first, rest @ ..]) => {
            if let Some(inner) = first.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                remove(inner, rest);
            }
        }
        _ => {}
    }
}

/// Texts go as the form reads them, without the blanks around them; what it takes for absent is not sent.
fn as_read(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, inner| match inner {
                Value::Null => false,
                Value::String(text) => !text.trim().is_empty(),
                _ => true,
            });
            fields.values_mut().for_each(as_read);
        }
        Value::Array(items) => items.iter_mut().for_each(as_read),
        Value::String(text) if text.trim().len() < text.len() => *text = text.trim().to_owned(),
        _ => {}
    }
}
