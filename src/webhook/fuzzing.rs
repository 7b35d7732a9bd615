//! The entry point of a fuzz target in `fuzz/`: compiled for it and for the tests, never for the service.

use super::attempt::{Attempt, Outcome};
use super::auth::read_token;
use super::format::judged;
use crate::domain::integration::Format;

/// Reads an answer as a receiver's of each format that says anything in it, and as a token endpoint's.
pub fn answer(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let attempt =
        |outcome| Attempt { response_head: text.clone().into_owned(), ..Attempt::unanswered(outcome) };
    let empty = String::new;
    for format in [
        Format::Soap { action: empty(), namespace: empty(), method: empty() },
        Format::GraphQl { mutation: empty() },
        Format::JsonRpc { method: empty() },
    ] {
        let answered = Attempt { status: Some(200), ..attempt(Outcome::Delivered) };
        drop(judged(answered, (&format, "e1"), 64));
    }
    drop(read_token(&attempt(Outcome::Delivered)));
    drop(read_token(&Attempt { status: Some(400), ..attempt(Outcome::Rejected(400)) }));
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
