//! Prepares a received value for display: cuts long values, and hides fields that may hold a secret.

use serde_json::{Value, json};

use crate::domain::kernel::fault::json_pointer;

/// The maximum number of characters shown of a text.
const CHARS_SHOWN_MAX: usize = 64;
/// The maximum number of characters shown of a number.
const DIGITS_SHOWN_MAX: usize = 40;
/// If the name of a field contains one of these words, the value of the field may be secret and is not shown.
const SECRET_NAME_PARTS: [&str; 6] = [
    "password",
    "secret",
    "token",
    "key",
    "credential",
    "authorization",
];

/// Returns the value at a dotted path as it may be shown. Returns null if the value is absent or may be secret.
pub(crate) fn displayable_value(document: &Value, path: &str) -> Value {
    let name = path
        .rsplit('.')
        .find(|step| step.parse::<usize>().is_err())
        .unwrap_or_default();
    if SECRET_NAME_PARTS
        .iter()
        .any(|secret| name.to_ascii_lowercase().contains(secret))
    {
        return Value::Null;
    }
    shorten_value(
        document
            .pointer(&json_pointer(path))
            .unwrap_or(&Value::Null),
    )
}

fn shorten_value(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(shorten(text, CHARS_SHOWN_MAX)),
        Value::Number(number) if number.to_string().len() > DIGITS_SHOWN_MAX => {
            json!(shorten(&number.to_string(), DIGITS_SHOWN_MAX))
        }
        Value::Array(items) => json!(format!("an array of {} items", items.len())),
        Value::Object(fields) => json!(format!("an object of {} fields", fields.len())),
        other => other.clone(),
    }
}

fn shorten(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_shortened() {
        let document = json!({
            "note": "é".repeat(65), "text": "é".repeat(64), "list": [1, { "of": true }], "object": {}, "no": null,
        });
        let long = displayable_value(&document, "note");
        assert_eq!(long.as_str().unwrap().chars().count(), 65);
        assert!(long.as_str().unwrap().ends_with('…'));
        assert_eq!(displayable_value(&document, "text"), document["text"]);
        assert_eq!(displayable_value(&document, "list"), "an array of 2 items");
        assert_eq!(displayable_value(&document, "list.0"), 1);
        assert_eq!(displayable_value(&document, "list.1.of"), true);
        assert_eq!(
            displayable_value(&document, "object"),
            "an object of 0 fields"
        );
        assert_eq!(displayable_value(&document, "no"), Value::Null);
        assert_eq!(displayable_value(&document, "list.7"), Value::Null);
        let huge: Value = strict_json::from_trusted(&"9".repeat(100)).unwrap();
        assert_eq!(
            displayable_value(&json!({ "n": huge }), "n")
                .as_str()
                .unwrap()
                .chars()
                .count(),
            DIGITS_SHOWN_MAX + 1
        );
    }

    #[test]
    fn a_possible_secret_is_not_shown() {
        let document =
            json!({ "contact": { "password": "hunter2", "api_key": ["tpk_1"] }, "Token": "t" });
        for path in ["contact.password", "contact.api_key.0", "Token"] {
            assert_eq!(displayable_value(&document, path), Value::Null, "{path}");
        }
    }
}
