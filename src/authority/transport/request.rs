//! A request to the authority before it is sent.
//!
//! Text from outside becomes one path segment or one query value, and cannot escape it.

use reqwest::Method;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::authority::operation::Operation;

/// The operation, its path and its body.
#[derive(Debug)]
pub(crate) struct AuthorityRequest<'a> {
    pub(crate) operation: Operation,
    pub(crate) method: Method,
    /// The path below the root, encoded, with its query: `/api/v1/invoice/transmit/pull?confirmed=false`.
    pub(crate) path: String,
    pub(crate) body: Option<&'a Value>,
    /// The IRN it concerns, for the log and the breaker.
    pub(crate) irn: Option<&'a str>,
    /// Reference lists are requested without the keys.
    pub(crate) with_keys: bool,
}

impl<'a> AuthorityRequest<'a> {
    /// A request for `path`, which is relative to `/api/v1` and encoded already.
    pub(crate) fn new(operation: Operation, method: Method, path: &str) -> Self {
        let path = format!("/api/v1{path}");
        Self { operation, method, path, body: None, irn: None, with_keys: true }
    }

    pub(crate) fn for_irn(mut self, irn: &'a str) -> Self {
        self.irn = Some(irn);
        self
    }

    pub(crate) fn body(mut self, body: &'a Value) -> Self {
        self.irn = self.irn.or_else(|| body.get("irn").and_then(Value::as_str));
        self.body = Some(body);
        self
    }

    pub(crate) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            let pair = Serializer::new(String::new()).append_pair(name, &value.to_string()).finish();
            self.path.push(if self.path.contains('?') { '&' } else { '?' });
            self.path.push_str(&pair);
        }
        self
    }

    pub(crate) fn without_keys(mut self) -> Self {
        self.with_keys = false;
        self
    }
}

/// Returns the text as one path segment (RFC 3986: all but the unreserved characters percent-encoded). Returns
/// `None` for a segment that a URL would drop or climb from: empty, `.` and `..`.
pub(crate) fn path_segment(text: &str) -> Option<String> {
    if matches!(text, "" | "." | "..") {
        return None;
    }
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push_str(&hex::encode_upper([byte]));
        }
    }
    Some(encoded)
}

#[cfg(test)]
mod tests {
    use proptest::proptest;

    use super::*;

    proptest! {
        #[test]
        fn any_text_stays_one_segment(text in "(?s).*") {
            if let Some(encoded) = path_segment(&text) {
                let url = reqwest::Url::parse(&format!("http://host/a/{encoded}")).unwrap();
                assert_eq!(url.path(), format!("/a/{encoded}"));
                assert_eq!(url.query(), None);
                assert_eq!(url.path_segments().unwrap().count(), 2);
            }
        }
    }

    #[test]
    fn a_segment_cannot_be_escaped() {
        let cases = [
            ("INV1-1A2B3C4D-20260101", Some("INV1-1A2B3C4D-20260101")),
            ("../../admin", Some("..%2F..%2Fadmin")),
            ("a/b?c#d%2F", Some("a%2Fb%3Fc%23d%252F")),
            ("a\\b c\n", Some("a%5Cb%20c%0A")),
            ("ä", Some("%C3%A4")),
            ("", None),
            (".", None),
            ("..", None),
        ];
        for (text, encoded) in cases {
            assert_eq!(path_segment(text).as_deref(), encoded, "{text:?}");
        }
    }
}
