//! Converts the body of Submit or Validate to the authority's document, without unknown and empty fields.

use serde_json::{Map, Value, json};

use crate::domain::kernel::codes::{Category, DeclaredPaymentStatus};
use crate::http::forms::normalized::as_sent;

/// Paths of the country fields. The authority accepts country codes in capital letters only.
const COUNTRIES: [&str; 2] = [
    "/accounting_supplier_party/postal_address/country",
    "/accounting_customer_party/postal_address/country",
];

/// Returns the document for the authority, without the fields at the paths `unknown`.
pub(crate) fn sent(body: &Map<String, Value>, unknown: &[Vec<String>]) -> Value {
    let mut document = as_sent(body.clone(), unknown);
    for country in COUNTRIES {
        if let Some(Value::String(code)) = document.pointer_mut(country) {
            code.make_ascii_uppercase();
        }
    }
    document
}

/// Renames `invoice_category` to `invoice_kind`, and sets `payment_status` to the authority's word for it.
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

/// Returns the body of Validate from which `sent` and `rename` made this document; `None` if it is no object.
pub(crate) fn callers(document: &Value) -> Option<Map<String, Value>> {
    let mut body = document.as_object()?.clone();
    if let Some(kind) = body.remove("invoice_kind") {
        body.insert("invoice_category".to_owned(), kind);
    }
    let read = body.get("payment_status").and_then(Value::as_str);
    let declared = DeclaredPaymentStatus::ALL.iter().find(|one| Some(one.reads_as().as_str()) == read);
    if let Some(declared) = declared {
        body.insert("payment_status".to_owned(), json!(declared));
    }
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_names_come_back() {
        let status = Some(DeclaredPaymentStatus::Cancelled);
        let mut fields = Map::from_iter([("irn".to_owned(), json!("x"))]);
        rename(&mut fields, Some(Category::B2G), status);
        let body = callers(&Value::Object(fields)).map(Value::Object);
        let expected = json!({ "irn": "x", "invoice_category": "B2G", "payment_status": "CANCELLED" });
        assert_eq!(body, Some(expected));
        assert_eq!(callers(&json!("text")), None);
    }
}
