//! The log of the requests that accounts made with their API keys, for the developers who build on the API. It helps
//! them to find mistakes. It contains no secrets: `redaction` hides them before anything is stored.

mod redaction;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};

pub use redaction::{RedactedText, redact};

/// The maximum number of bytes of a body that are stored. A longer body is cut.
pub const BODY_BYTES_MAX: usize = 8 * 1024;

/// The maximum number of characters of a path that are stored.
pub const PATH_CHARS_MAX: usize = 500;

/// A request and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedRequest {
    /// The id, which grows with time, so that it gives the order of the log.
    pub id: Uuid,
    pub at: Timestamp,
    pub caller: RequestOwner,
    pub request_id: String,
    pub method: String,
    /// The path with its query string, without secrets.
    pub path: String,
    /// The pattern that the path matched, such as `/v1/tax-payers/invoices/{id}`.
    pub route: String,
    pub status: u16,
    pub error_code: Option<String>,
    pub duration_ms: u64,
    /// The key as lists show it: its name and its last characters.
    pub key: String,
    /// The id or the IRN of the invoice that the request was about, if its path or its response contains one.
    pub invoice: Option<String>,
    pub request: LoggedBody,
    pub response: LoggedBody,
}

/// The account whose key was used. An integrator may also read the requests of its taxpayers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestOwner {
    /// `None` for a request that an integrator made with its own key.
    pub taxpayer: Option<TaxpayerId>,
    pub integrator: Option<IntegratorId>,
}

words! {
    /// The part of a body that is stored.
    BodyExtent {
        /// The whole body, as it was sent.
        Whole = "whole",
        /// The whole body, with `(hidden)` in place of secrets.
        Redacted = "redacted",
        /// The first 8 KiB of the body, without secrets.
        Cut = "cut",
        /// Nothing, because the body is a file or contains a secret as a whole, or because bodies were not stored.
        Omitted = "omitted",
    }
}

/// The body of a request or of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedBody {
    /// The length of the body as it was sent.
    pub bytes: u64,
    pub extent: BodyExtent,
    /// The stored part; empty if nothing is stored.
    pub text: String,
}

impl LoggedBody {
    /// Creates a body of which only the length is stored.
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

    /// Creates a JSON body and hides its secrets. `start` holds the whole body, or at least as much of its beginning as
    /// is stored. `whole_bytes` is the length of the whole body.
    pub fn from_json(start: &[u8], whole_bytes: u64) -> Self {
        let start = start.get(..BODY_BYTES_MAX).unwrap_or(start);
        // The last character may be cut, and PostgreSQL stores no NUL.
        let text = String::from_utf8_lossy(start).replace('\0', "\u{fffd}");
        let RedactedText { text, hides } = redact(&text);
        let is_whole = u64::try_from(start.len()).is_ok_and(|length| length == whole_bytes);
        let extent = match (is_whole, hides) {
            (false, _) => BodyExtent::Cut,
            (true, true) => BodyExtent::Redacted,
            (true, false) => BodyExtent::Whole,
        };
        Self {
            bytes: whole_bytes,
            extent,
            text,
        }
    }
}

/// The failures with the same error code, method and route: their number, and the time of the last one.
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
            let body = LoggedBody::from_json(text.as_bytes(), text.len() as u64);
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
        let body = LoggedBody::from_json(text.as_bytes(), text.len() as u64);
        assert!(body.text.ends_with("x\u{fffd}"), "{}", body.text.len());
        assert_eq!(LoggedBody::from_json(b"\0", 1).text, "\u{fffd}");
    }
}
