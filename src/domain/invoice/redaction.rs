//! Hides contact data of people and secrets in documents. Operators see documents in this form, on pages and under
//! `/ops`, until they ask for the hidden data. The audit records each such request.

use serde_json::{Map, Value};

use crate::domain::invoice::history::HistoryEntry;

/// The names of fields whose values are hidden everywhere in a document. No operator needs these values to find a
/// fault.
const HIDDEN_FIELDS: [&str; 12] = [
    "email",
    "telephone",
    "phone",
    "street_name",
    "address_street_name",
    "postal_zone",
    "address",
    "contact_name",
    "password",
    "api_key",
    "secret",
    "token",
];
const REPLACEMENT: &str = "(hidden)";

/// Returns a document in which the values of hidden fields are replaced.
pub fn redact(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(redact_fields(fields)),
        Value::Array(items) => items.into_iter().map(redact).collect(),
        other => other,
    }
}

/// Returns the fields of a document in which the values of hidden fields are replaced.
pub fn redact_fields(mut fields: Map<String, Value>) -> Map<String, Value> {
    for (name, value) in &mut fields {
        let is_hidden = value.is_string() && HIDDEN_FIELDS.contains(&name.as_str());
        *value = if is_hidden {
            Value::from(REPLACEMENT)
        } else {
            redact(value.take())
        };
    }
    fields
}

/// True for the path of a hidden field, such as `customer.email`.
fn is_hidden(path: &str) -> bool {
    path.rsplit('.')
        .next()
        .is_some_and(|name| HIDDEN_FIELDS.contains(&name))
}

impl HistoryEntry {
    /// Returns the entry in which the values of hidden fields are replaced, in the invoice and in the changes.
    #[must_use]
    pub fn redact(mut self) -> Self {
        self.version.invoice = redact(self.version.invoice);
        for change in self
            .changes
            .iter_mut()
            .filter(|change| is_hidden(&change.field))
        {
            let hide = |value: &mut Option<String>| {
                if let Some(text) = value {
                    *text = Value::from(REPLACEMENT).to_string();
                }
            };
            hide(&mut change.before);
            hide(&mut change.after);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::domain::events::event::EventKind;
    use crate::domain::invoice::history::{ChangedField, InvoiceAfterEvent};

    #[test]
    fn contact_data_is_hidden_at_every_depth() {
        let party = json!({ "party_name": "Ada", "email": "a@b.example", "postal_address": { "street_name": "1 Way" } });
        let shown = redact(json!({ "irn": "INV1", "parties": [party], "phone": null }));
        let party = json!({ "party_name": "Ada", "email": "(hidden)", "postal_address": { "street_name": "(hidden)" } });
        assert_eq!(
            shown,
            json!({ "irn": "INV1", "parties": [party], "phone": null })
        );
    }

    #[test]
    fn contact_data_is_hidden_in_what_an_event_changed() {
        let change = |field: &str, after: &str| ChangedField {
            field: field.to_owned(),
            before: None,
            after: Some(json!(after).to_string()),
        };
        let entry = HistoryEntry {
            version: InvoiceAfterEvent {
                sequence: 2,
                at: Timestamp::UNIX_EPOCH,
                kind: EventKind::InvoiceUpdated,
                invoice: json!({ "customer": { "name": "Ada", "email": "a@b.example" } }),
            },
            earlier_sequence: Some(1),
            later_sequence: None,
            changes: vec![
                change("customer.email", "a@b.example"),
                change("customer.name", "Ada"),
            ],
        };
        let shown = format!("{:?}", entry.redact());
        assert!(
            shown.contains("Ada") && shown.contains("(hidden)") && !shown.contains("a@b"),
            "{shown}"
        );
    }
}
