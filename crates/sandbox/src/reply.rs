//! The JSON envelope of every answer, and the words of refusals.
//!
//! Success is `{ code, data, message }`. Failure is `{ code, data: null, message, error }`; `ErrorShape` names the forms
//! of `error`.

use serde_json::{Value, json};

use crate::dialect::Dialect;

/// The authority's message for a duplicate and also for a busy moment, so a client cannot tell the two apart.
pub(crate) const AMBIGUOUS: &str =
    "unable to complete this operation at this time, kindly try again later";

/// The status and body of an answer, before a fault is applied.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AuthorityReply {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// The seconds for the header Retry-After.
    pub(crate) retry_after_s: Option<u64>,
}

impl AuthorityReply {
    pub(crate) fn success(status: u16, data: &Value) -> Self {
        let body = json!({ "code": status, "data": data, "message": "success" });
        Self {
            status,
            body,
            retry_after_s: None,
        }
    }

    pub(crate) fn without_envelope(status: u16, body: Value) -> Self {
        Self {
            status,
            body,
            retry_after_s: None,
        }
    }
}

/// The form of the member `error` of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ErrorShape {
    /// An object `{ id, handler, public_message }`.
    Plain,
    /// The object of `Plain` with a member `details` that repeats the message.
    Details,
    /// The object of `Plain` with a member `errors: [{ field, message }]` for this field.
    Fields(String),
    /// The message as text instead of an object.
    Text,
    /// The failure has no member `error`.
    Absent,
}

/// The refusal of a call: the status, the authority's message, and the form of the member `error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    status: u16,
    words: String,
    shape: ErrorShape,
}

impl Refusal {
    pub(crate) fn new(status: u16, words: impl Into<String>) -> Self {
        Self {
            status,
            words: words.into(),
            shape: ErrorShape::Plain,
        }
    }

    pub(crate) fn ambiguous(status: u16) -> Self {
        Self::new(status, AMBIGUOUS)
    }

    pub(crate) fn wrong_key() -> Self {
        Self::new(400, "unable to validate api key")
    }

    /// Refuses a document. `words` is the fault: a path and the rule that the value there breaks.
    pub(crate) fn document(words: String) -> Self {
        Self {
            status: 400,
            words,
            shape: ErrorShape::Details,
        }
    }

    pub(crate) fn field(field: &str, rule: &str) -> Self {
        Self {
            status: 400,
            words: format!("{field} {rule}"),
            shape: ErrorShape::Fields(field.to_owned()),
        }
    }

    /// Returns a server error. Its member `error` is plain text, as in the server errors of the real authority.
    pub(crate) fn server_error(status: u16, words: &str) -> Self {
        Self {
            status,
            words: words.to_owned(),
            shape: ErrorShape::Text,
        }
    }

    pub(crate) fn unknown_route() -> Self {
        Self {
            status: 404,
            words: "the requested route does not exist".into(),
            shape: ErrorShape::Absent,
        }
    }

    pub(crate) fn in_dialect(self, dialect: Dialect) -> Self {
        Self {
            words: dialect.reword(&self.words).to_owned(),
            ..self
        }
    }

    /// Returns the answer. `id` and `handler` become members of `error`.
    pub(crate) fn reply(&self, id: &str, handler: &str) -> AuthorityReply {
        let mut body = json!({ "code": self.status, "data": null, "message": self.words });
        let mut error = json!({ "id": id, "handler": handler, "public_message": self.words });
        match &self.shape {
            ErrorShape::Absent => return AuthorityReply::without_envelope(self.status, body),
            ErrorShape::Text => error = json!(self.words),
            ErrorShape::Plain => {}
            ErrorShape::Details => error["details"] = json!(self.words),
            ErrorShape::Fields(field) => {
                error["errors"] = json!([{ "field": field, "message": self.words }]);
            }
        }
        body["error"] = error;
        AuthorityReply::without_envelope(self.status, body)
    }
}
