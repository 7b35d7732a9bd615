//! Identifiers. Numeric ids stay below 2^53, so that JavaScript clients read them exactly.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Declares a type for each kind of numeric id.
macro_rules! number_id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

number_id! {
    TaxpayerId,
    /// The id of an integrator. An integrator acts for the taxpayers that it onboarded.
    IntegratorId,
    /// The id of a contact person of a taxpayer.
    ContactId,
    /// The id of an invoice. Callers can refer to an invoice by this id (`PORTAL_ID`).
    InvoiceId,
    /// The id of a customer. Each customer belongs to one taxpayer.
    CustomerId,
    /// The id of an item in a taxpayer's catalog.
    ItemId,
    /// The key of a webhook endpoint in lanes, deliveries and replays. A taxpayer's default endpoint has the id of the
    /// taxpayer. An endpoint that was added has its own id as a negative number, so the two never collide.
    EndpointKey,
}

/// The id by which callers name a taxpayer's default endpoint.
pub const DEFAULT_ENDPOINT: &str = "default";

impl EndpointKey {
    /// Returns the key of an added endpoint (one that is not the default) with this id.
    pub fn for_added_endpoint(id: i64) -> Self {
        Self(-id)
    }

    /// True for the one endpoint of a taxpayer that Update Webhook sets.
    pub fn is_default(self) -> bool {
        self.0 > 0
    }

    /// Returns the id by which callers name the endpoint.
    pub fn name(self) -> String {
        if self.is_default() {
            DEFAULT_ENDPOINT.to_owned()
        } else {
            (-self.0).to_string()
        }
    }
}

/// Returns the key of the taxpayer's default endpoint.
impl From<TaxpayerId> for EndpointKey {
    fn from(taxpayer: TaxpayerId) -> Self {
        Self(taxpayer.0)
    }
}

/// The id of an API key within its account: the beginning of the SHA-256 of its text. Nobody can authenticate with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId([u8; 6]);

impl KeyId {
    pub fn from_digest(digest: &[u8; 32]) -> Self {
        let mut id = [0; 6];
        id.copy_from_slice(&digest[..6]);
        Self(id)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl std::str::FromStr for KeyId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut id = [0; 6];
        hex::decode_to_slice(text, &mut id).map_err(|error| error.to_string())?;
        Ok(Self(id))
    }
}

pub type RunId = Uuid;
pub type OutageId = Uuid;
/// The id of an event in the log. Each delivery of the event sends this id in the header `webhook-id`.
pub type EventId = Uuid;

/// Parses a positive id of decimal digits without a leading zero, so that each id has only one spelling.
pub fn parse_id(text: &str) -> Option<i64> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok())?
}
