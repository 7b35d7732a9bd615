//! A request before it is sent.
//!
//! Whatever comes from outside becomes one path segment or one value of the query, and cannot leave it.

use reqwest::Method;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use super::operation::Operation;

/// What to ask: the operation, where, and with what.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) operation: Operation,
    pub(super) method: Method,
    /// Below the root, encoded, with its query: `/api/v1/invoice/transmit/pull?confirmed=false`.
    pub(super) path: String,
    pub(super) body: Option<&'a Value>,
    /// The IRN it is about, for the log.
    pub(super) irn: Option<&'a str>,
    /// Reference lists are asked without the keys.
    pub(super) with_keys: bool,
}

impl<'a> Call<'a> {
    /// A call of `path`, which stands below `/api/v1` and is encoded already.
    pub(super) fn new(operation: Operation, method: Method, path: &str) -> Self {
        let path = format!("/api/v1{path}");
        Self { operation, method, path, body: None, irn: None, with_keys: true }
    }

    pub(super) fn about(mut self, irn: &'a str) -> Self {
        self.irn = Some(irn);
        self
    }

    pub(super) fn body(mut self, body: &'a Value) -> Self {
        self.irn = self.irn.or_else(|| body.get("irn").and_then(Value::as_str));
        self.body = Some(body);
        self
    }

    pub(super) fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            let pair = Serializer::new(String::new()).append_pair(name, &value.to_string()).finish();
            self.path.push(if self.path.contains('?') { '&' } else { '?' });
            self.path.push_str(&pair);
        }
        self
    }

    pub(super) fn without_keys(mut self) -> Self {
        self.with_keys = false;
        self
    }
}

/// The text as one path segment (RFC 3986: all but the unreserved characters percent-encoded).
/// None for a segment that a URL would drop or climb from: empty, `.` and `..`.
pub(super) fn segment(text: &str) -> Option<String> {
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
            if let Some(encoded) = segment(&text) {
                let url = reqwest::Url::parse(&format!("http://host/a/{encoded}")).unwrap();
                assert_eq!(url.path(), format!("/a/{encoded}"));
                assert_eq!(url.query(), None);
                assert_eq!(url.path_segments().unwrap().count(), 2);
            }
        }
    }

    #[test]
    fn a_segment_cannot_be_left() {
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
            assert_eq!(segment(text).as_deref(), encoded, "{text:?}");
        }
    }
}
