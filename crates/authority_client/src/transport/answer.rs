//! The envelope of the authority's answers, `{ code, data, message, error }`, and the choice of the sentence that is
//! shown to callers.
//!
//! The reason for a failure may be in `message`, in `error` (a string), or in `public_message`, `details` or `errors`
//! of `error`.

use serde_json::{Map, Value, json};

/// The longest sentence that is shown to callers, in characters.
const SHOWN_CHARS_MAX: usize = 2_000;

/// Texts that say nothing about the reason, in lower case and without a full stop.
const MEANINGLESS_PHRASES: [&str; 9] = [
    "",
    "error",
    "bad request",
    "error has occurred",
    "an error occurred",
    "an error has occurred",
    "unprocessable entity",
    "validation failed",
    "something went wrong",
];

/// The parts of an envelope. An absent part is null.
#[derive(Debug, Default)]
pub(crate) struct AuthorityAnswer {
    /// The whole envelope as the authority wrote it.
    pub(crate) text: Vec<u8>,
    pub(crate) data: Value,
    pub(crate) message: Value,
    pub(crate) error: Value,
}

impl AuthorityAnswer {
    /// Parses an envelope. Returns `None` if the text is no JSON object.
    pub(crate) fn parse(body: &[u8]) -> Option<Self> {
        let mut envelope: Map<String, Value> = strict_json::from_untrusted(body).ok()?;
        let mut part = |name: &str| envelope.remove(name).unwrap_or_default();
        Some(Self {
            text: body.to_vec(),
            data: part("data"),
            message: part("message"),
            error: part("error"),
        })
    }

    pub(crate) fn not_ok_answer() -> Self {
        Self {
            data: json!({ "ok": false }),
            ..Self::default()
        }
    }

    /// Returns the sentence to show to callers: the first text that names a field, else the first that gives a reason,
    /// else the first of all. Each NUL in it becomes a space, because PostgreSQL stores none.
    pub(crate) fn sentence(&self, status: u16) -> String {
        let candidates = self.candidate_sentences();
        let chosen = candidates
            .iter()
            .find(|text| field_path_in(text).is_some())
            .or_else(|| candidates.iter().find(|text| has_meaning(text)))
            .or_else(|| candidates.first());
        chosen.map_or_else(
            || format!("the authority refused without giving a reason (HTTP {status})"),
            |text| {
                text.replace('\0', " ")
                    .chars()
                    .take(SHOWN_CHARS_MAX)
                    .collect()
            },
        )
    }

    /// Returns true if any text of the answer contains `words` (in lower case).
    pub(crate) fn contains(&self, words: &str) -> bool {
        self.candidate_sentences()
            .iter()
            .any(|text| fold_phrase(text).contains(words))
    }

    /// Returns true if the answer names a field of the request.
    pub(crate) fn mentions_field(&self) -> bool {
        if self
            .field_faults()
            .iter()
            .any(|fault| !fault.field.is_empty())
        {
            return true;
        }
        let candidates = self.candidate_sentences();
        let path = candidates.iter().find_map(|text| field_path_in(text));
        path.and_then(|path| path.split('.').next())
            .is_some_and(|first| first.ends_with("request"))
    }

    /// Returns true if the answer gives no reason.
    pub(crate) fn has_no_text(&self) -> bool {
        self.candidate_sentences().is_empty()
    }

    /// Returns every text of the answer that may be the reason, the most specific text first.
    fn candidate_sentences(&self) -> Vec<String> {
        let listed = self
            .field_faults()
            .iter()
            .map(FieldFault::sentence)
            .collect::<Vec<_>>()
            .join("; ");
        let error = |name: &str| self.error.get(name);
        let parts = [
            error("public_message").and_then(joined_text),
            error("details")
                .and_then(|details| joined_text(details).or_else(|| joined_pairs(details))),
            joined_text(&self.error),
            joined_text(&self.message),
        ];
        std::iter::once(listed)
            .chain(parts.into_iter().flatten())
            .filter(|text| !text.trim().is_empty())
            .collect()
    }

    fn field_faults(&self) -> Vec<FieldFault> {
        let listed = self
            .error
            .get("errors")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        let part =
            |entry: &Value, name: &str| entry.get(name).and_then(joined_text).unwrap_or_default();
        listed
            .iter()
            .map(|entry| FieldFault {
                field: part(entry, "field"),
                message: part(entry, "message"),
            })
            .filter(|fault| !fault.is_empty())
            .collect()
    }
}

/// One entry of `error.errors[]`.
struct FieldFault {
    field: String,
    message: String,
}

impl FieldFault {
    /// Returns field and message as one sentence. If the message begins with the field, returns the message alone.
    fn sentence(&self) -> String {
        let Self { field, message } = self;
        if field.is_empty() || message.starts_with(field) {
            return message.clone();
        }
        format!("{field}: {message}")
    }

    fn is_empty(&self) -> bool {
        self.field.is_empty() && self.message.is_empty()
    }
}

/// Returns the text of a string, or the texts of a list joined by semicolons.
fn joined_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
            (!texts.is_empty()).then(|| texts.join("; "))
        }
        _ => None,
    }
}

/// Returns the fields and texts of an object as `field: text`, joined by semicolons.
fn joined_pairs(value: &Value) -> Option<String> {
    let texts: Vec<String> = value
        .as_object()?
        .iter()
        .filter_map(|(field, value)| Some(format!("{field}: {}", joined_text(value)?)))
        .collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn has_meaning(text: &str) -> bool {
    !MEANINGLESS_PHRASES.contains(&fold_phrase(text).trim_end_matches(['.', '!']))
}

fn fold_phrase(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_lowercase()
}

/// Returns the first word that looks like the path of a field, such as `invoice.lines[0].price`.
fn field_path_in(text: &str) -> Option<&str> {
    text.split_whitespace()
        .map(|word| word.trim_end_matches(':'))
        .find(|word| is_field_path(word))
}

fn is_field_path(word: &str) -> bool {
    word.contains('.')
        && word.bytes().all(|byte| {
            byte.is_ascii_lowercase()
                || byte.is_ascii_digit()
                || matches!(byte, b'_' | b'.' | b'[' | b']')
        })
        && word.split('.').all(|part| {
            part.len() > 1 && part.starts_with(|first: char| first.is_ascii_lowercase())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(value: &Value) -> AuthorityAnswer {
        AuthorityAnswer::parse(value.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn the_most_informative_sentence_is_chosen() {
        let path = "invoicerequest.invoice.taxtotal[0].taxsubtotal[0].taxcategory.id must be one of the list";
        let cases = [
            (
                json!({"message": "error has occurred", "error": {"public_message": "the irn is stale"}}),
                "the irn is stale",
            ),
            (
                json!({"message": "error", "error": {"public_message": "An error occurred.", "details": "due date is past"}}),
                "due date is past",
            ),
            (
                json!({"message": "no", "error": {"public_message": "unable to validate the invoice", "details": path}}),
                path,
            ),
            (
                json!({"message": "bad request", "error": "the business is not enrolled"}),
                "the business is not enrolled",
            ),
            (json!({"message": "route not found"}), "route not found"),
            (json!({"message": "error"}), "error"),
            (json!({"message": "bad \0 name"}), "bad   name"),
            (
                json!({"message": "error", "error": {"errors": [{"field": "irn", "message": "is required"}]}}),
                "irn: is required",
            ),
            (
                json!({"message": "error", "error": {"details": {"irn": "is taken", "due_date": ["is past"]}}}),
                "due_date: is past; irn: is taken",
            ),
            (
                json!({"error": {"details": {"deep": 1}}}),
                "the authority refused without giving a reason (HTTP 400)",
            ),
            (
                json!({"error": {"errors": [{"field": "irn", "message": "irn is required"}]}}),
                "irn is required",
            ),
            (
                json!({}),
                "the authority refused without giving a reason (HTTP 400)",
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(answer(&body).sentence(400), expected, "{body}");
        }
    }

    #[test]
    fn a_field_is_named_by_the_list_or_by_a_path_in_the_sentence() {
        let path = "invoicerequest.invoice.taxtotal[0].taxsubtotal[0].taxcategory.id";
        assert!(answer(&json!({"message": format!("{path} must be known")})).mentions_field());
        let listed = json!({"error": {"errors": [{"field": "issue_date", "message": "is late"}]}});
        assert!(answer(&listed).mentions_field());
        assert!(!answer(&json!({"message": "other.path must be known"})).mentions_field());
        for plain in [
            "the irn is wrong.",
            "e.g. so",
            "see https://a.b/c",
            "1.5 is too much",
            "Invoice.Id is wrong",
        ] {
            assert_eq!(field_path_in(plain), None, "{plain}");
        }
    }

    #[test]
    fn only_a_json_object_is_an_envelope() {
        for text in [
            "",
            "[1,2,3]",
            "null",
            "\"text\"",
            "<xml/>",
            "{\"code\":",
            "\u{0}",
        ] {
            assert!(AuthorityAnswer::parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(AuthorityAnswer::parse(b" {}").is_some());
        assert!(AuthorityAnswer::parse(b"\xef\xbb\xbf{}").is_some());
    }

    #[test]
    fn a_long_sentence_is_cut() {
        let long = answer(&json!({"message": "ä".repeat(10_000)}));
        assert_eq!(long.sentence(400).chars().count(), SHOWN_CHARS_MAX);
    }
}
