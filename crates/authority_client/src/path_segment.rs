//! Encodes a text from outside as one segment of a URL's path.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters to encode: all except the unreserved characters of RFC 3986.
const ENCODED_CHARACTERS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Returns the text percent-encoded; `None` for an empty text, `.` and `..`, which a URL parser removes.
pub fn encode_path_segment(text: &str) -> Option<String> {
    (!matches!(text, "" | "." | ".."))
        .then(|| utf8_percent_encode(text, ENCODED_CHARACTERS).to_string())
}

#[cfg(test)]
mod tests {
    use proptest::proptest;

    use super::*;

    proptest! {
        #[test]
        fn any_text_stays_one_segment(text in "(?s).*") {
            if let Some(encoded) = encode_path_segment(&text) {
                let url = url::Url::parse(&format!("http://host/a/{encoded}")).unwrap();
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
            assert_eq!(encode_path_segment(text).as_deref(), encoded, "{text:?}");
        }
    }
}
