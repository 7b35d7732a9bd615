//! The idempotency claim of a request: of several requests with the same `Idempotency-Key`, only one is processed. The
//! fingerprint shows whether a later request with this key is a repetition.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::domain::access::api_key::KeyOwner;

/// A request's claim to an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyClaim {
    /// SHA-256 of caller and key, in hexadecimal.
    pub id: String,
    pub fingerprint: Fingerprint,
    /// From this time on, a new request can claim the key again.
    pub expires_at: Timestamp,
}

/// The digests that define a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// SHA-256 of the parts that define the request, such as method, path and the bytes of the body, in hexadecimal.
    pub bytes: String,
    /// SHA-256 of the same parts with the content of the body instead of its bytes, in hexadecimal. `None` if the content
    /// was not read, and in keys that an earlier version stored.
    pub content: Option<String>,
}

impl Fingerprint {
    fn from_bytes(request: &[&[u8]]) -> Self {
        Self {
            bytes: digest(request),
            content: None,
        }
    }

    /// True if the two requests are the same, even if only the spelling of their bodies differs.
    pub fn is_same_request(&self, other: &Self) -> bool {
        self.bytes == other.bytes || (self.content.is_some() && self.content == other.content)
    }
}

impl IdempotencyClaim {
    /// Creates a caller's claim to an idempotency key. `request` lists the parts that define the request, such as
    /// method, path and body.
    pub fn new(owner: KeyOwner, key: &str, request: &[&[u8]], expires_at: Timestamp) -> Self {
        let id = digest(&[
            owner.kind.as_str().as_bytes(),
            &owner.id.to_be_bytes(),
            key.as_bytes(),
        ]);
        Self {
            id,
            fingerprint: Fingerprint::from_bytes(request),
            expires_at,
        }
    }

    /// Adds the digest of the content. `request` lists the same parts as for `new`, with the content of the body in one
    /// spelling instead of its bytes.
    #[must_use]
    pub fn with_content(mut self, request: &[&[u8]]) -> Self {
        self.fingerprint.content = Some(digest(request));
        self
    }

    /// Creates the claim of a form on a page. `request` lists the parts that define the request, such as path and
    /// fields. These parts also go into the id, because the same form with other fields counts as another request.
    pub fn for_form(
        session_token: &str,
        form_token: &str,
        request: &[&[u8]],
        expires_at: Timestamp,
    ) -> Self {
        let fingerprint = Fingerprint::from_bytes(request);
        let parts = ["form", session_token, form_token, &fingerprint.bytes].map(str::as_bytes);
        Self {
            id: digest(&parts),
            fingerprint,
            expires_at,
        }
    }

    /// Returns the claim that is stored before the request is executed, under an id of its own. As long as only this
    /// claim is stored and not the request's own, the request has begun, but it is not known to be done.
    #[must_use]
    pub fn begun_request_claim(&self) -> Self {
        Self {
            id: digest(&[b"intent", self.id.as_bytes()]),
            ..self.clone()
        }
    }
}

/// Returns the SHA-256 over the length and the bytes of each part, so that `["ab", "c"]` and `["a", "bc"]` have
/// different hashes.
fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// The stored response of a processed request. It is sent again if the request is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::caller::KeyKind;

    const OWNER: KeyOwner = KeyOwner {
        kind: KeyKind::Taxpayer,
        id: 7,
    };

    fn claim(owner: KeyOwner, key: &str, request: [&str; 3]) -> IdempotencyClaim {
        IdempotencyClaim::new(
            owner,
            key,
            &request.map(str::as_bytes),
            Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn a_key_belongs_to_its_caller() {
        let request = ["POST", "/a", "{}"];
        let one = claim(OWNER, "k", request);
        assert_eq!(one, claim(OWNER, "k", request));
        assert_ne!(one.id, claim(KeyOwner { id: 8, ..OWNER }, "k", request).id);
        assert_ne!(
            one.id,
            claim(
                KeyOwner {
                    kind: KeyKind::Integrator,
                    ..OWNER
                },
                "k",
                request
            )
            .id
        );
        assert_ne!(one.id, claim(OWNER, "K", request).id);
    }

    #[test]
    fn another_method_path_or_body_is_another_request() {
        let of = |request| claim(OWNER, "k", request).fingerprint;
        let one = of(["POST", "/a", "{}"]);
        for other in [
            ["PUT", "/a", "{}"],
            ["POST", "/b", "{}"],
            ["POST", "/a", "{ }"],
            ["POST", "/a{}", ""],
        ] {
            assert!(!one.is_same_request(&of(other)), "{other:?}");
        }
    }

    #[test]
    fn another_spelling_of_the_same_content_is_the_same_request() {
        let spelled = |bytes, content: Option<&str>| {
            let claim = claim(OWNER, "k", ["PATCH", "/a", bytes]);
            let claim = match content {
                Some(content) => claim.with_content(&[b"PATCH", b"/a", content.as_bytes()]),
                None => claim,
            };
            claim.fingerprint
        };
        let first = spelled("75.0", Some("75"));
        for (bytes, content, expected) in [
            ("75.0", Some("75"), true),
            ("75", Some("75"), true),
            ("75.0", None, true),
            ("75", None, false),
            ("76", Some("76"), false),
        ] {
            let other = spelled(bytes, content);
            assert_eq!(first.is_same_request(&other), expected, "{bytes}");
            assert_eq!(other.is_same_request(&first), expected, "{bytes}");
        }
        let unread = spelled("75.0", None);
        assert!(!unread.is_same_request(&spelled("75", None)));
    }
}
