//! A delivery: one event on its way to one endpoint. Delivery is at least once and ordered by IRN. An event
//! that has used all its attempts is a dead letter and does not block later events (docs/contract.md,
//! "Delivery of webhooks").

use jiff::Timestamp;

use crate::domain::events::event::{Event, EventKind};
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{EventId, TaxpayerId};

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
    /// Deliveries with the same key are sent in order: the IRN, or the event id if there is none.
    pub order_key: String,
    pub state: DeliveryState,
    /// Attempts made so far.
    pub attempts: u32,
    /// Attempts made before the last replay. The retry schedule counts from there.
    pub attempts_before: u32,
    pub next_attempt_at: Option<Timestamp>,
    /// Process crashes during an attempt, or possibly during one.
    pub crashes: u32,
}

impl Delivery {
    /// Creates a delivery that is due at once.
    pub fn due(id: uuid::Uuid, event: &Event, now: Timestamp) -> Self {
        Self {
            id,
            taxpayer_id: event.taxpayer_id,
            event_id: event.id,
            sequence: event.sequence,
            order_key: event.irn.clone().unwrap_or_else(|| event.id.to_string()),
            state: DeliveryState::Pending,
            attempts: 0,
            attempts_before: 0,
            next_attempt_at: Some(now),
            crashes: 0,
        }
    }

    /// True if this delivery may have crashed a process. It is then attempted with nothing else in flight
    /// at its endpoint.
    pub fn goes_alone(&self) -> bool {
        self.crashes > 0
    }

    /// The IRN of the event, if it has one.
    pub fn irn(&self) -> Option<&str> {
        (self.order_key != self.event_id.to_string()).then_some(&self.order_key)
    }

    /// Attempts since the last replay.
    pub fn attempts_of_schedule(&self) -> u32 {
        self.attempts.saturating_sub(self.attempts_before)
    }
}

/// The result of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttempt {
    pub at: Timestamp,
    pub status: Option<u16>,
    /// A class such as `timeout` or `status`; none on success.
    pub failure: Option<String>,
    pub duration_ms: i64,
    pub phases: PhaseDurations,
    /// The beginning of the response body.
    pub response: String,
}

/// The duration of each phase of an attempt, in milliseconds; `None` for a phase that did not take place,
/// such as connecting on a reused connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhaseDurations {
    pub dns_ms: Option<i64>,
    pub connect_ms: Option<i64>,
    pub wait_ms: Option<i64>,
    pub read_ms: Option<i64>,
}

words! {
    /// How notifications are signed: with a shared secret, or with a key pair whose private key never
    /// leaves this service.
    SecretType { Hmac = "hmac", Ed25519 = "ed25519" }
}

/// A taxpayer's webhook endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub id: i64,
    pub taxpayer_id: TaxpayerId,
    pub url: String,
    /// As sent by the caller; an unknown name never matches.
    pub enabled_events: Vec<String>,
    pub is_active: bool,
    pub disabled_reason: Option<String>,
    /// Sequence of the last event before the endpoint was last disabled; `None` if it never was.
    pub disabled_after: Option<i64>,
    /// Verifies the newest signature, if that uses a key pair.
    pub public_key: Option<String>,
    /// The delay before each attempt, in seconds; `None` uses the schedule of the deployment.
    pub retry_schedule: Option<Vec<u32>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A change of an endpoint's retry schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleChange {
    /// The schedule stays as it is.
    Keep,
    /// The schedule of the deployment.
    Shared,
    Own(Vec<u32>),
}

impl ScheduleChange {
    /// Returns the schedule after the change.
    pub fn applied(self, before: Option<Vec<u32>>) -> Option<Vec<u32>> {
        match self {
            Self::Keep => before,
            Self::Shared => None,
            Self::Own(delays) => Some(delays),
        }
    }
}

impl Endpoint {
    pub fn wants(&self, kind: EventKind) -> bool {
        self.is_active && self.names(kind)
    }

    /// True if the event is enabled, whether or not the endpoint is active.
    pub fn names(&self, kind: EventKind) -> bool {
        self.enabled_events.iter().any(|name| name == kind.as_str())
    }

    /// Returns the enabled events, whether or not the endpoint is active.
    pub fn enabled_kinds(&self) -> Vec<EventKind> {
        EventKind::ALL.iter().copied().filter(|kind| self.names(*kind)).collect()
    }

    /// Returns the names of the changed parts; for a new endpoint, of the parts that are set.
    pub fn changed_since(&self, before: Option<&Self>) -> Vec<&'static str> {
        let blank = || {
            let (url, enabled_events) = (String::new(), Vec::new());
            Self { url, enabled_events, retry_schedule: None, ..self.clone() }
        };
        let before = before.cloned().unwrap_or_else(blank);
        [
            ("webhook_url", self.url != before.url),
            ("enabled_events", self.enabled_events != before.enabled_events),
            ("retry_schedule_s", self.retry_schedule != before.retry_schedule),
            ("is_active", self.is_active != before.is_active),
        ]
        .into_iter()
        .filter_map(|(name, is_changed)| is_changed.then_some(name))
        .collect()
    }

    /// Returns the endpoint, active again.
    #[must_use]
    pub fn enabled(self, now: Timestamp) -> Self {
        Self { is_active: true, disabled_reason: None, updated_at: now, ..self }
    }
}
