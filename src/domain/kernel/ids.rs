//! Identifiers. Numbers are portal ids that the store assigns; they stay below 2^53 so that JavaScript
//! clients read them exactly.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Declares the id type of one kind of entity.
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
    /// A taxpayer.
    TaxpayerId,
    /// An integrator, which acts for the taxpayers it onboarded.
    IntegratorId,
    /// An invoice: the portal id.
    InvoiceId,
    /// A customer of one taxpayer.
    CustomerId,
    /// An item of one taxpayer's catalog.
    ItemId,
}

/// The id of a command, the same each time it is sent. Its events carry it, so its outcome can be looked up.
pub type CommandId = Uuid;
/// One run of the pipeline.
pub type RunId = Uuid;
/// One outage of the authority.
pub type OutageId = Uuid;
/// One event of the log; also the `webhook-id` of its deliveries.
pub type EventId = Uuid;

/// Parses an id: decimal digits that do not begin with zero, so that an id has one spelling and none is 0.
pub fn parse_number(text: &str) -> Option<i64> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok())?
}
