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
    /// SHA-256 of the parts that define the request, such as method, path and body, in hexadecimal.
    pub fingerprint: String,
    /// From this time on, a new request can claim the key again.
    pub expires_at: Timestamp,
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
            fingerprint: digest(request),
            expires_at,
        }
    }

    /// Creates the claim of a form on a page. `request` lists the parts that define the request, such as path and
    /// fields. These parts also go into the id, because the same form with other fields counts as another request.
    pub fn for_form(
        session_token: &str,
        form_token: &str,
        request: &[&[u8]],
        expires_at: Timestamp,
    ) -> Self {
        let fingerprint = digest(request);
        let parts = ["form", session_token, form_token, &fingerprint].map(str::as_bytes);
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
            assert_ne!(of(other), one, "{other:?}");
        }
    }
}
