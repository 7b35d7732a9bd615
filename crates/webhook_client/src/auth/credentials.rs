//! The authentication headers of a request. Their values are marked as sensitive, so that they do not appear in logs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use super::fault::AuthFault;

/// The default header for an API key.
pub const API_KEY_HEADER_DEFAULT: &str = "x-api-key";

/// Headers that HTTP or this service uses. An API key may not be sent in one of them.
const RESERVED_HEADERS: [&str; 13] = [
    "accept",
    "connection",
    "expect",
    "host",
    "keep-alive",
    "prefer",
    "soapaction",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
];
const RESERVED_PREFIXES: [&str; 5] = ["accept-", "content-", "odata-", "proxy-", "webhook-"];

/// The headers that authenticate a request; none for a request without authentication.
#[derive(Debug, Clone, Default)]
pub struct Credentials(HeaderMap);

impl Credentials {
    /// Builds the header for a user name and a password (RFC 7617).
    pub fn basic(username: &str, password: &str) -> Result<Self, AuthFault> {
        Self::authorization("Basic", &STANDARD.encode(format!("{username}:{password}")))
    }

    /// Builds the header for a bearer token (RFC 6750).
    pub fn bearer(token: &str) -> Result<Self, AuthFault> {
        Self::authorization("Bearer", token)
    }

    /// Builds the header for an API key. `header` is the name of the header.
    pub fn api_key(header: &str, value: &str) -> Result<Self, AuthFault> {
        let name = HeaderName::from_bytes(header.as_bytes()).map_err(|_| AuthFault::Unwritable)?;
        Self::header(name, value)
    }

    pub(super) fn authorization(scheme: &str, value: &str) -> Result<Self, AuthFault> {
        Self::header(AUTHORIZATION, &format!("{scheme} {value}"))
    }

    fn header(name: HeaderName, value: &str) -> Result<Self, AuthFault> {
        let mut value = HeaderValue::from_str(value).map_err(|_| AuthFault::Unwritable)?;
        value.set_sensitive(true);
        Ok(Self(HeaderMap::from_iter([(name, value)])))
    }

    pub(crate) fn none() -> Self {
        Self::default()
    }

    pub(crate) fn headers(&self) -> HeaderMap {
        self.0.clone()
    }
}

/// Returns true if an API key may be sent in this header.
pub fn is_free_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    HeaderName::from_bytes(name.as_bytes()).is_ok()
        && !RESERVED_HEADERS.contains(&name.as_str())
        && !RESERVED_PREFIXES
            .iter()
            .any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header_texts(credentials: &Credentials) -> Vec<(String, String)> {
        let text = |value: &HeaderValue| String::from_utf8(value.as_bytes().to_vec()).unwrap();
        credentials
            .0
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect()
    }

    #[test]
    fn credentials_are_written_as_their_rfcs_require() {
        for (credentials, name, value) in [
            // The examples of RFC 7617.
            (
                Credentials::basic("Aladdin", "open sesame"),
                "authorization",
                "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
            ),
            (
                Credentials::basic("test", "123£"),
                "authorization",
                "Basic dGVzdDoxMjPCow==",
            ),
            (
                Credentials::bearer("mF_9.B5f-4.1JqM"),
                "authorization",
                "Bearer mF_9.B5f-4.1JqM",
            ),
            (Credentials::api_key("X-Erp-Key", "k 1"), "x-erp-key", "k 1"),
        ] {
            let credentials = credentials.unwrap();
            assert_eq!(
                header_texts(&credentials),
                [(name.to_owned(), value.to_owned())]
            );
            assert!(
                !format!("{credentials:?}").contains(value),
                "a secret is not shown"
            );
        }
        assert_eq!(
            Credentials::bearer("a\nb").unwrap_err(),
            AuthFault::Unwritable
        );
        assert_eq!(
            Credentials::api_key("a b", "c").unwrap_err(),
            AuthFault::Unwritable
        );
    }

    #[test]
    fn a_key_may_not_use_a_reserved_header() {
        for name in [
            API_KEY_HEADER_DEFAULT,
            "Authorization",
            "api-key",
            "Ocp-Apim-Subscription-Key",
            "x-webhook",
        ] {
            assert!(is_free_header(name), "{name}");
        }
        for name in [
            "Host",
            "CONTENT-LENGTH",
            "content-type",
            "webhook-id",
            "Webhook-Signature",
            "connection",
            "te",
        ] {
            assert!(!is_free_header(name), "{name}");
        }
        for name in [
            "transfer-encoding",
            "proxy-authorization",
            "soapaction",
            "",
            "a b",
            "a:b",
            "ä",
            "a\r\nb",
        ] {
            assert!(!is_free_header(name), "{name}");
        }
    }
}
