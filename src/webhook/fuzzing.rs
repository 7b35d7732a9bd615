//! The entry point of a fuzz target in `fuzz/`. Compiled only for fuzzing and for tests.

use super::attempt::{AttemptOutcome, AttemptResult};
use super::auth::read_token;
use super::format::interpret;
use crate::domain::integration::Format;

/// Reads `text` as a response in each format whose body contains the result, and as a response of a token endpoint.
pub fn answer(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let attempt = |outcome| AttemptResult {
        response_head: text.clone().into_owned(),
        ..AttemptResult::unanswered(outcome)
    };
    let empty = String::new;
    for format in [
        Format::Soap { action: empty(), namespace: empty(), method: empty() },
        Format::GraphQl { mutation: empty() },
        Format::JsonRpc { method: empty() },
    ] {
        let answered = AttemptResult { status: Some(200), ..attempt(AttemptOutcome::Delivered) };
        drop(interpret(answered, &format, "e1", 64));
    }
    drop(read_token(&attempt(AttemptOutcome::Delivered)));
    drop(read_token(&AttemptResult { status: Some(400), ..attempt(AttemptOutcome::Rejected(400)) }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_takes_anything() {
        for text in [
            "",
            "{",
            "<a><b/>",
            r#"{"result":1,"data":{},"access_token":"t"}"#,
            r#"{"error":"invalid_grant"}"#,
        ] {
            answer(text.as_bytes());
        }
        answer(b"\xff");
    }
}
