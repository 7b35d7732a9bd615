//! The document that Submit sends to the authority, with the authority's names for fields and values. The JSON is kept
//! exactly as it was built, because the authority signs all of it. The fields that this service needs are read from it
//! once.

use jiff::civil::{Date, Time};
use serde_json::{Map, Value, json};

use crate::domain::invoice::document_difference::Differences;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::{Category, DeclaredPaymentStatus, PaymentStatus};

/// Paths of the country fields. The authority accepts country codes in capital letters only.
const COUNTRY_POINTERS: [&str; 2] = [
    "/accounting_supplier_party/postal_address/country",
    "/accounting_customer_party/postal_address/country",
];
/// The number of characters in `YYYY-MM-DD`. A time after the date is ignored.
const DATE_BYTES: usize = 10;

#[derive(Debug, Clone, PartialEq)]
pub struct AuthorityDocument {
    json: Value,
    pub invoice_reference: Option<String>,
    pub business_id: Option<String>,
    pub category: Option<Category>,
    pub issue_date: Option<Date>,
    pub issue_time: Option<Time>,
    pub due_date: Option<Date>,
    /// The payment status that the signed invoice states.
    pub payment_status: Option<PaymentStatus>,
    /// The first differences between the document and the stored invoice at the time when it was sent. They are not a
    /// part of the document.
    pub differences: Differences,
}

impl AuthorityDocument {
    /// Builds the document from the fields of a request. Category and payment status are converted to the authority's
    /// names, and country codes are written in upper case.
    pub fn new(
        mut fields: Map<String, Value>,
        category: Option<Category>,
        status: Option<DeclaredPaymentStatus>,
    ) -> Self {
        fields.remove("invoice_category");
        if let Some(category) = category {
            fields.insert("invoice_kind".to_owned(), json!(category));
        }
        if let Some(status) = status {
            fields.insert(
                "payment_status".to_owned(),
                json!(status.to_payment_status()),
            );
        }
        let mut json = Value::Object(fields);
        for country in COUNTRY_POINTERS {
            if let Some(Value::String(code)) = json.pointer_mut(country) {
                code.make_ascii_uppercase();
            }
        }
        Self::from_json(json)
    }

    /// Reads a stored document.
    pub fn from_json(json: Value) -> Self {
        let text = |name: &str| json.get(name).and_then(Value::as_str);
        Self {
            invoice_reference: text("invoice_reference").map(str::to_owned),
            business_id: text("business_id").map(str::to_owned),
            category: text("invoice_kind").and_then(Category::parse),
            issue_date: text("issue_date").and_then(parse_date_prefix),
            issue_time: text("issue_time").and_then(|time| time.parse().ok()),
            due_date: text("due_date").and_then(parse_date_prefix),
            payment_status: text("payment_status").and_then(|word| {
                PaymentStatus::parse(word).or_else(|| {
                    DeclaredPaymentStatus::parse(word).map(DeclaredPaymentStatus::to_payment_status)
                })
            }),
            differences: Differences::default(),
            json,
        }
    }

    #[must_use]
    pub fn with_differences(self, differences: Differences) -> Self {
        Self {
            differences: differences.truncate_for_storage(),
            ..self
        }
    }

    pub fn as_json(&self) -> &Value {
        &self.json
    }

    /// Replaces the IRN of the document by another spelling of the same IRN.
    #[must_use]
    pub fn with_irn_spelling(mut self, irn: &Irn) -> Self {
        if let Some(field) = self.json.get_mut("irn") {
            *field = Value::from(irn.as_str());
        }
        self
    }

    /// Returns the body of a Validate request for this document, with the API's names for category and payment status.
    pub fn validate_request_body(&self) -> Map<String, Value> {
        let mut body = self.json.as_object().cloned().unwrap_or_default();
        body.remove("invoice_kind");
        if let Some(category) = self.category {
            body.insert("invoice_category".to_owned(), json!(category));
        }
        let declared = DeclaredPaymentStatus::ALL
            .iter()
            .find(|one| Some(one.to_payment_status()) == self.payment_status);
        if let Some(declared) = declared {
            body.insert("payment_status".to_owned(), json!(declared));
        }
        body
    }
}

/// Reads the date at the start of a text. A time may follow the date.
pub fn parse_date_prefix(text: &str) -> Option<Date> {
    text.get(..DATE_BYTES)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> Map<String, Value> {
        let body = json!({
            "irn": "x", "business_id": "b", "invoice_category": "B2G", "payment_status": "CANCELLED",
            "issue_date": "2026-11-21", "accounting_customer_party": { "postal_address": { "country": "ng" } },
        });
        body.as_object().unwrap().clone()
    }

    #[test]
    fn a_document_has_the_authoritys_words_and_gives_the_callers_back() {
        let document = AuthorityDocument::new(
            body(),
            Some(Category::B2G),
            Some(DeclaredPaymentStatus::Cancelled),
        );
        let json = document.as_json();
        assert_eq!(
            (&json["invoice_kind"], &json["payment_status"]),
            (&json!("B2G"), &json!("REJECTED"))
        );
        assert_eq!(
            json["accounting_customer_party"]["postal_address"]["country"],
            "NG"
        );
        assert_eq!(
            (document.category, document.payment_status),
            (Some(Category::B2G), Some(PaymentStatus::Rejected))
        );
        assert_eq!(document.issue_date, Some("2026-11-21".parse().unwrap()));
        assert_eq!(AuthorityDocument::from_json(json.clone()), document);
        let mut expected = body();
        expected["accounting_customer_party"]["postal_address"]["country"] = json!("NG");
        assert_eq!(document.validate_request_body(), expected);
    }

    #[test]
    fn what_is_missing_or_odd_is_not_known() {
        let odd = json!({ "issue_date": "soon", "payment_status": 1, "invoice_kind": "B2X" });
        let document = AuthorityDocument::from_json(odd);
        assert_eq!(
            (
                document.issue_date,
                document.payment_status,
                document.category
            ),
            (None, None, None)
        );
        assert_eq!(
            AuthorityDocument::from_json(json!("text")).validate_request_body(),
            Map::new()
        );
    }
}
