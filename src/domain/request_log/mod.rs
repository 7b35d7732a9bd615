//! The log of the requests that an account made with its API keys, for the people who build on the API. It holds what
//! helps them to find a mistake and no secret: `redaction` hides those before anything is kept.

mod redaction;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};

pub use redaction::{Redacted, redact};

/// The bytes of a body that are kept. A longer one is cut.
pub const BODY_BYTES_MAX: usize = 8 * 1024;

/// The characters of a path that are kept.
pub const PATH_CHARS_MAX: usize = 500;

/// A request with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// Ids grow with time, so they give the order of the log.
    pub id: Uuid,
    pub at: Timestamp,
    pub caller: LogOwner,
    pub request_id: String,
    pub method: String,
    /// The path with its query string, without secrets.
    pub path: String,
    /// The pattern that the path matched, such as `/v1/tax-payers/invoices/{id}`.
    pub route: String,
    pub status: u16,
    pub error_code: Option<String>,
    pub duration_ms: u64,
    /// The key as the list of keys shows it: its name and its last characters.
    pub key: String,
    /// The id or the IRN of the invoice that the request was about, if its path or its answer has one.
    pub invoice: Option<String>,
    pub request: LoggedBody,
    pub response: LoggedBody,
}

/// The account whose key was used. The requests of a taxpayer are also its integrator's to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOwner {
    /// `None` for a request that an integrator made with its own key.
    pub taxpayer: Option<TaxpayerId>,
    pub integrator: Option<IntegratorId>,
}

words! {
    /// How much of a body is kept.
    BodyExtent {
        /// All of it, as it was sent.
        Whole = "whole",
        /// All but secrets, which `(hidden)` stands for.
        Redacted = "redacted",
        /// Its first 8 KiB, without secrets.
        Cut = "cut",
        /// Nothing: a file, an answer that holds a secret, or the request was not kept with its bodies.
        Omitted = "omitted",
    }
}

/// The body of a request or of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedBody {
    /// The length of the body as it was sent.
    pub bytes: u64,
    pub extent: BodyExtent,
    /// Empty if nothing is kept.
    pub text: String,
}

impl LoggedBody {
    /// Returns the body of which nothing is kept but its length.
    pub fn without_text(bytes: u64) -> Self {
        Self {
            bytes,
            extent: if bytes == 0 {
                BodyExtent::Whole
            } else {
                BodyExtent::Omitted
            },
            text: String::new(),
        }
    }

    /// Returns a JSON body without its secrets. `start` holds its first bytes, or all of them.
    pub fn json(start: &[u8], bytes: u64) -> Self {
        let start = start.get(..BODY_BYTES_MAX).unwrap_or(start);
        // A character may be cut in two, and the database stores no NUL.
        let text = String::from_utf8_lossy(start).replace('\0', "\u{fffd}");
        let Redacted { text, hides } = redact(&text);
        let is_whole = u64::try_from(start.len()).is_ok_and(|length| length == bytes);
        let extent = match (is_whole, hides) {
            (false, _) => BodyExtent::Cut,
            (true, true) => BodyExtent::Redacted,
            (true, false) => BodyExtent::Whole,
        };
        Self {
            bytes,
            extent,
            text,
        }
    }
}

/// A kind of failure in the log: how often it happened, and when last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorGroup {
    pub error_code: String,
    pub method: String,
    pub route: String,
    pub count: u64,
    pub last_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_says_how_much_of_it_is_kept() {
        let long = format!("{{\"name\":\"{}\"}}", "x".repeat(BODY_BYTES_MAX));
        for (text, extent) in [
            ("{\"name\":\"Ada\"}", BodyExtent::Whole),
            ("", BodyExtent::Whole),
            ("{\"password\":\"a secret\"}", BodyExtent::Redacted),
            (long.as_str(), BodyExtent::Cut),
        ] {
            let body = LoggedBody::json(text.as_bytes(), text.len() as u64);
            assert_eq!(
                (body.extent, body.bytes),
                (extent, text.len() as u64),
                "{text}"
            );
            assert!(body.text.len() <= BODY_BYTES_MAX);
        }
        assert_eq!(LoggedBody::without_text(7).extent, BodyExtent::Omitted);
        assert_eq!(LoggedBody::without_text(0).extent, BodyExtent::Whole);
    }

    #[test]
    fn a_character_that_the_cut_divides_and_a_nul_are_replaced() {
        let text = format!("{}\u{e9}", "x".repeat(BODY_BYTES_MAX - 1));
        let body = LoggedBody::json(text.as_bytes(), text.len() as u64);
        assert!(body.text.ends_with("x\u{fffd}"), "{}", body.text.len());
        assert_eq!(LoggedBody::json(b"\0", 1).text, "\u{fffd}");
    }
}
