//! A notification as it arrived, and the check of its signatures, written from the text of Standard Webhooks alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Reply, Request};

/// The largest accepted difference between the time of a notification and the receiver's clock, in seconds.
const TOLERANCE_S: u64 = 300;

#[derive(Debug, Clone)]
pub struct Received {
    pub id: String,
    pub timestamp: String,
    pub signature: String,
    pub bytes: Vec<u8>,
    /// The headers by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The number of the connection over which the notification came.
    pub connection: usize,
    pub answered: Reply,
    /// False while the answer is held back or delayed.
    pub is_answered: bool,
    pub at: Instant,
    body: Arc<Value>,
}

impl Received {
    pub fn new(request: &Request<'_>, answered: Reply) -> Self {
        let headers = request
            .headers()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        Self {
            id: request.header("webhook-id").to_owned(),
            timestamp: request.header("webhook-timestamp").to_owned(),
            signature: request.header("webhook-signature").to_owned(),
            bytes: request.body.to_vec(),
            headers: headers.collect(),
            connection: request.connection,
            answered,
            is_answered: false,
            at: Instant::now(),
            body: Arc::new(strict_json::from_untrusted(request.body).unwrap_or_default()),
        }
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Returns the body as JSON; null if it is not JSON.
    pub fn body(&self) -> &Value {
        &self.body
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    pub fn kind(&self) -> String {
        self.body["type"].as_str().unwrap().to_owned()
    }

    pub fn taxpayer(&self) -> i64 {
        self.body["taxpayer_id"].as_i64().unwrap()
    }

    pub fn sequence(&self) -> i64 {
        self.body["sequence"].as_i64().unwrap()
    }

    pub fn irn(&self) -> &str {
        self.body["data"]["irn"].as_str().unwrap()
    }

    pub fn is_accepted(&self) -> bool {
        self.answered.is_acceptance()
    }

    /// Returns true if a receiver that follows the standard accepts the notification: it is recent and signed with this
    /// secret.
    pub(super) fn is_genuine(&self, secret: &str) -> bool {
        let is_recent = self
            .timestamp
            .parse()
            .is_ok_and(|then: u64| now_s().abs_diff(then) <= TOLERANCE_S);
        is_recent && !self.id.is_empty() && self.is_signed_with(secret)
    }

    /// Returns whether one of the signatures was made with this secret.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let key = STANDARD
            .decode(secret.strip_prefix("whsec_").unwrap())
            .unwrap();
        let tag = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, &key),
            &self.signed_content(),
        );
        let expected = format!("v1,{}", STANDARD.encode(tag));
        self.signature
            .split(' ')
            .any(|signature| signature == expected)
    }

    /// Returns whether one of the signatures was made with the private key of this public key.
    pub fn is_signed_by_key_pair(&self, public_key: &str) -> bool {
        let key = STANDARD
            .decode(public_key.strip_prefix("whpk_").unwrap())
            .unwrap();
        let key = UnparsedPublicKey::new(&ED25519, key);
        let signatures = self
            .signature
            .split(' ')
            .filter_map(|part| part.strip_prefix("v1a,"));
        let content = self.signed_content();
        signatures
            .map(|text| STANDARD.decode(text).unwrap())
            .any(|one| key.verify(&content, &one).is_ok())
    }

    fn signed_content(&self) -> Vec<u8> {
        [
            format!("{}.{}.", self.id, self.timestamp).as_bytes(),
            &self.bytes,
        ]
        .concat()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a receiver has a clock of its own, not the one of the service"
)]
fn now_s() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}
