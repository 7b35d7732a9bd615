//! Reads an operator's reason for an action. The audit log stores the reason.

use crate::http::forms::field::LONG_TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;

/// An operator's reason for an action that does not require one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reason(pub(crate) Option<String>);

#[expect(
    clippy::unnecessary_wraps,
    reason = "every form returns an `Option`, and this form requires no field"
)]
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<Reason> {
    Some(Reason(
        reader.optional("reason").long_text(0, LONG_TEXT_CHARS_MAX),
    ))
}

/// Reads the reason of an action that requires one.
pub(crate) fn read_required(reader: &mut Reader<'_>) -> Option<String> {
    reader.required("reason").long_text(0, LONG_TEXT_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::forms::testing::check;

    #[test]
    fn a_reason_is_a_text_of_bounded_length() {
        let cases = [
            ("/reason", None, ""),
            ("/reason", Some(json!("x".repeat(1_000))), ""),
            ("/reason", Some(json!("x".repeat(1_001))), "reason: max"),
            ("/reason", Some(json!(7)), "reason: type"),
            (
                "/reason",
                Some(json!("a\u{0}b")),
                "reason: control_characters",
            ),
        ];
        check(&json!({ "reason": "the authority is back" }), &cases, read);
    }
}
