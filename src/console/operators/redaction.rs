//! Documents as operators see them: without the contact data of people, and without secrets.

use serde_json::Value;

/// The fields that are hidden wherever they stand: an operator needs none of them to find a fault.
const HIDDEN: [&str; 9] =
    ["email", "telephone", "phone", "street_name", "address", "password", "api_key", "secret", "token"];
const SHOWN_INSTEAD: &str = "(hidden)";

/// Returns a document as indented JSON, with hidden fields replaced.
pub(super) fn shown(document: &Value) -> String {
    format!("{:#}", hidden(document.clone()))
}

fn hidden(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| {
                let is_hidden = value.is_string() && HIDDEN.contains(&name.as_str());
                let value = if is_hidden { Value::from(SHOWN_INSTEAD) } else { hidden(value) };
                (name, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(hidden).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn contact_data_is_hidden_at_every_depth() {
        let party = json!({ "party_name": "Ada", "email": "a@b.example", "postal_address": { "street_name": "1 Way" } });
        let shown = hidden(json!({ "irn": "INV1", "parties": [party], "phone": null }));
        let party = json!({ "party_name": "Ada", "email": "(hidden)", "postal_address": { "street_name": "(hidden)" } });
        assert_eq!(shown, json!({ "irn": "INV1", "parties": [party], "phone": null }));
    }
}
