//! A delivery: one event on its way to one endpoint. At least once, in order per IRN; an event whose
//! attempts are spent is a dead letter and holds back nothing (decisions.md, point 16).

use jiff::Timestamp;

use crate::domain::codes::words;
use crate::domain::ids::{EventId, TaxpayerId};

words! {
    DeliveryState { Pending = "pending", Delivered = "delivered", Dead = "dead" }
}

/// An event to be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: uuid::Uuid,
    pub taxpayer_id: TaxpayerId,
    pub event_id: EventId,
    pub sequence: i64,
    /// What orders deliveries: the IRN, or the event itself where it has none.
    pub order_key: String,
    pub state: DeliveryState,
    /// Attempts made so far.
    pub attempts: u32,
    pub next_attempt_at: Option<Timestamp>,
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub at: Timestamp,
    pub status: Option<u16>,
    /// A class such as `timeout` or `status`; none on success.
    pub failure: Option<String>,
    pub duration_ms: i64,
    /// The beginning of the answer's body.
    pub response: String,
}

/// Where a taxpayer's notifications go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub id: i64,
    pub taxpayer_id: TaxpayerId,
    pub url: String,
    /// As they were sent; a name that is no event never matches.
    pub enabled_events: Vec<String>,
    pub is_active: bool,
    pub disabled_reason: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Endpoint {
    pub fn wants(&self, kind: super::event::EventKind) -> bool {
        self.is_active && self.enabled_events.iter().any(|name| name == kind.as_str())
    }
}
