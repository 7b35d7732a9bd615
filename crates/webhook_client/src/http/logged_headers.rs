//! The headers of a request and of its response, as the log of attempts keeps them: at most 4 KiB of each, and without
//! secrets, which a reader of the log could misuse. What a response repeats of the request's secrets is hidden, also in
//! its body.

use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::body::Body;

use crate::http::client::Request;

/// The text that stands in place of a hidden value.
const HIDDEN: &str = "(hidden)";
/// The largest number of bytes of all names and values together.
const BYTES_MAX: usize = 4 * 1_024;
/// The number of characters of a signature that are kept: enough to compare it with another signature, too few to send
/// the message again.
const SIGNATURE_CHARS: usize = 8;
const SIGNATURE_HEADER: &str = "webhook-signature";
/// Response headers with secrets of the receiver.
const SECRET_RESPONSE_HEADERS: [&str; 6] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
    "set-cookie2",
    "authentication-info",
];
/// The minimum length of a part of a secret that is searched for in the response. A shorter part would be found by
/// chance.
const SECRET_PART_BYTES_MIN: usize = 8;

/// Names and values, in the order in which they were sent.
pub type LoggedHeaders = Vec<(String, String)>;

/// The headers of a request with credentials or signatures. A response may repeat them.
#[derive(Default)]
pub(crate) struct RequestSecrets(Vec<(HeaderName, HeaderValue)>);

impl RequestSecrets {
    pub(crate) fn find(request: &Request) -> Self {
        let headers = request.headers().iter();
        let secret = headers
            .filter(|(name, value)| value.is_sensitive() || name.as_str() == SIGNATURE_HEADER);
        Self(
            secret
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// Returns the headers of the response. Hides those that carry a secret of the receiver or of the request.
    pub(crate) fn log_response(&self, headers: &HeaderMap) -> LoggedHeaders {
        let logged = headers.iter().map(|(name, value)| {
            let is_secret = SECRET_RESPONSE_HEADERS.contains(&name.as_str())
                || self.0.iter().any(|(secret, _)| secret == name)
                || self.occur_in(value);
            (name.as_str(), logged_text(value, is_secret))
        });
        keep_within_limit(logged)
    }

    fn occur_in(&self, value: &HeaderValue) -> bool {
        let text = String::from_utf8_lossy(value.as_bytes());
        self.secret_texts().any(|secret| text.contains(secret)) || self.hide_in(&text) != text
    }

    /// Returns a text of the response without the secrets that it repeats.
    fn hide_in(&self, text: &str) -> String {
        self.hide_in_start(text, usize::MAX)
    }

    /// Like `hide_in`, but stops when the result has this many bytes, because searching a long body takes much time.
    pub(crate) fn hide_in_start(&self, text: &str, bytes: usize) -> String {
        let parts = self.secret_parts();
        let mut shown = String::with_capacity(text.len().min(bytes));
        let mut rest = text;
        while shown.len() < bytes
            && let Some(letter) = rest.chars().next()
        {
            let lengths = parts.iter().filter_map(|part| written_length(rest, part));
            let length = if let Some(length) = lengths.max() {
                shown.push_str(HIDDEN);
                length
            } else {
                shown.push(letter);
                letter.len_utf8()
            };
            rest = &rest[length..];
        }
        shown
    }

    fn secret_texts(&self) -> impl Iterator<Item = &str> {
        let values = self.0.iter().map(|(_, value)| value.as_bytes());
        let texts = values.filter_map(|value| std::str::from_utf8(value).ok());
        texts.filter(|text| !text.is_empty())
    }

    /// Returns the secrets and their parts. Leaves out those that are so short that they would be found by chance.
    fn secret_parts(&self) -> Vec<&str> {
        let parts = self.secret_texts().flat_map(|secret| {
            let separate = secret.split(|letter: char| letter.is_whitespace() || letter == ',');
            separate.chain([secret])
        });
        parts
            .filter(|part| part.len() >= SECRET_PART_BYTES_MIN)
            .collect()
    }
}

/// If the text begins with this secret, as it is or escaped, returns the number of bytes that it takes in the text.
fn written_length(text: &str, secret: &str) -> Option<usize> {
    let rest = secret.chars().try_fold(text, strip_letter)?;
    Some(text.len() - rest.len())
}

/// Strips a letter from the start of a text, as it is or escaped as in JSON, HTML or a URL.
fn strip_letter(text: &str, letter: char) -> Option<&str> {
    let plain = text.strip_prefix(letter);
    if plain.is_some() || !text.starts_with(['\\', '&', '%']) {
        return plain;
    }
    let code = u32::from(letter);
    let escapes = [
        format!("\\{letter}"),
        format!("\\u{code:04x}"),
        format!("&#{code};"),
        format!("&#x{code:x};"),
        format!("%{code:02x}"),
    ];
    escapes.iter().find_map(|escape| {
        let (start, rest) = text.split_at_checked(escape.len())?;
        start.eq_ignore_ascii_case(escape).then_some(rest)
    })
}

/// Returns the headers that the client sends for this request. The transport adds some of them itself.
pub(crate) fn log_request(request: &Request) -> LoggedHeaders {
    let authority = request.uri().authority();
    let body_bytes = request.body().size_hint().lower();
    let added = [
        (HOST, authority.map(ToString::to_string).unwrap_or_default()),
        (CONTENT_LENGTH, body_bytes.to_string()),
    ];
    let headers = request.headers();
    let added = added
        .iter()
        .filter(|(name, _)| !headers.contains_key(name))
        .map(|(name, value)| (name.as_str(), value.clone()));
    let own = headers.iter().map(|(name, value)| {
        let text = match name.as_str() {
            SIGNATURE_HEADER => shorten_signatures(value),
            _ => logged_text(value, value.is_sensitive()),
        };
        (name.as_str(), text)
    });
    keep_within_limit(added.chain(own))
}

fn logged_text(value: &HeaderValue, is_secret: bool) -> String {
    if is_secret {
        return HIDDEN.to_owned();
    }
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Keeps the version and the first characters of each signature.
fn shorten_signatures(value: &HeaderValue) -> String {
    let text = String::from_utf8_lossy(value.as_bytes());
    let shortened = text.split(' ').map(|one| {
        let (version, signature) = one.split_once(',').unwrap_or_default();
        let start: String = signature.chars().take(SIGNATURE_CHARS).collect();
        format!("{version},{start}… {HIDDEN}")
    });
    shortened.collect::<Vec<_>>().join(" ")
}

/// Keeps the first headers. The value at the limit is cut, and those after it are left out.
fn keep_within_limit<'n>(headers: impl Iterator<Item = (&'n str, String)>) -> LoggedHeaders {
    let mut left = BYTES_MAX;
    let mut kept = Vec::new();
    for (name, mut value) in headers {
        if name.len() >= left {
            break;
        }
        left -= name.len();
        value.truncate(value.floor_char_boundary(left));
        left -= value.len();
        kept.push((name.to_owned(), value));
    }
    kept
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;
    use crate::auth::Credentials;

    fn request(credentials: &Credentials) -> Request {
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw==";
        let mut request = http::Request::post("http://receiver.example:8080/hook")
            .header(SIGNATURE_HEADER, signature)
            .body(Full::from("{}"))
            .unwrap();
        request.headers_mut().extend(credentials.headers());
        request
    }

    fn value<'l>(logged: &'l [(String, String)], wanted: &str) -> &'l str {
        let found = logged.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value.as_str())
    }

    #[test]
    fn a_logged_request_has_no_secret_and_only_the_start_of_a_signature() {
        for (credentials, name) in [
            (Credentials::basic("erp", "open sesame"), "authorization"),
            (Credentials::bearer("mF_9.B5f-4.1JqM"), "authorization"),
            (
                Credentials::api_key("x-erp-key", "swordfish-9"),
                "x-erp-key",
            ),
        ] {
            let logged = log_request(&request(&credentials.unwrap()));
            assert_eq!(value(&logged, name), HIDDEN);
            assert_eq!(
                value(&logged, SIGNATURE_HEADER),
                "v1,g0hM9SsE… (hidden) v1a,hnO3f9T8… (hidden)"
            );
            for (name, expected) in [("host", "receiver.example:8080"), ("content-length", "2")] {
                assert_eq!(value(&logged, name), expected, "{name}");
            }
        }
    }

    #[test]
    fn a_logged_response_repeats_no_secret() {
        let credentials = Credentials::bearer("mF_9.B5f-4.1JqM").unwrap();
        let secrets = RequestSecrets::find(&request(&credentials));
        for (name, sent, expected) in [
            ("set-cookie", "session=1", HIDDEN),
            ("authorization", "Bearer other", HIDDEN),
            ("x-echo", "Bearer mF_9.B5f-4.1JqM", HIDDEN),
            ("x-echo", "you sent mF_9.B5f-4.1JqM to us", HIDDEN),
            ("x-echo", "Bearer", "Bearer"),
            ("webhook-signature", "v1,other", HIDDEN),
            (
                "x-echo",
                "got g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
                HIDDEN,
            ),
            ("content-type", "text/plain", "text/plain"),
        ] {
            let name = HeaderName::from_static(name);
            let headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static(sent))]);
            let logged = secrets.log_response(&headers);
            assert_eq!(logged, [(name.to_string(), expected.to_owned())]);
        }
    }

    #[test]
    fn a_text_repeats_no_secret_however_it_is_escaped() {
        let credentials = Credentials::basic("erp/1", "a??a>>x").unwrap();
        let secrets = RequestSecrets::find(&request(&credentials));
        let headers = credentials.headers();
        let sent = headers["authorization"].to_str().unwrap();
        let basic = sent.strip_prefix("Basic ").unwrap();
        assert_eq!(basic, "ZXJwLzE6YT8/YT4+eA==");
        let escaped = |of: fn(u32) -> String| -> String {
            let letters = basic.chars();
            letters
                .map(|letter| match letter {
                    '+' | '/' | '=' => of(letter.into()),
                    plain => plain.to_string(),
                })
                .collect()
        };
        let forms = [
            basic.to_owned(),
            basic.replace('/', "\\/"),
            escaped(|code| format!("\\u{code:04X}")),
            escaped(|code| format!("&#{code};")),
            escaped(|code| format!("&#x{code:X};")),
            escaped(|code| format!("%{code:02X}")),
        ];
        for form in forms {
            let text = format!("ä {{\"authorization\": \"Basic {form}\"}} ü");
            let shown = secrets.hide_in(&text);
            assert!(!shown.contains(&form), "{shown}");
            assert!(shown.starts_with("ä {\"authorization\": \""), "{shown}");
            assert!(shown.ends_with("(hidden)\"} ü"), "{shown}");
        }
        for (text, expected) in [
            ("", ""),
            ("Basic", "Basic"),
            (
                "not v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE= but g0hM9SsE",
                "not v1,(hidden) but g0hM9SsE",
            ),
            (
                "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE\\u003d\n",
                "(hidden)\n",
            ),
        ] {
            assert_eq!(secrets.hide_in(text), expected);
        }
        assert_eq!(RequestSecrets::default().hide_in("any 100 %"), "any 100 %");
    }

    #[test]
    fn headers_are_kept_up_to_their_limit() {
        let long = || "x".repeat(3_000);
        let kept =
            keep_within_limit([("one", long()), ("two", long()), ("three", long())].into_iter());
        let lengths: Vec<_> = kept
            .iter()
            .map(|(name, value)| (name.as_str(), value.len()))
            .collect();
        assert_eq!(lengths, [("one", 3_000), ("two", 1_090)]);
        let wide = keep_within_limit([("one", "ü".repeat(3_000))].into_iter());
        assert_eq!(wide[0].1.len(), 4_092);
    }
}
