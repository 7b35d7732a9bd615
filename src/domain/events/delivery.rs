//! A delivery: one event on its way to one endpoint. At least once, in order per IRN; an event whose
//! attempts are spent is a dead letter and holds back nothing (docs/contract.md, "Delivery of webhooks").

use jiff::Timestamp;

use crate::domain::events::event::{Event, EventKind};
use crate::domain::kernel::codes::words;
use crate::domain::kernel::crash;
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
    /// What orders deliveries: the IRN, or the event itself where it has none.
    pub order_key: String,
    pub state: DeliveryState,
    /// Attempts made so far.
    pub attempts: u32,
    /// Those of them that were made before it was last replayed: the schedule counts from there.
    pub attempts_before: u32,
    pub next_attempt_at: Option<Timestamp>,
    /// Ends of a process while an attempt was, or may have been, under way.
    pub crashes: u32,
}

impl Delivery {
    /// An event that is due at once.
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

    /// The same delivery once more, with all its attempts before it.
    #[must_use]
    pub fn again(self, now: Timestamp) -> Self {
        Self {
            state: DeliveryState::Pending,
            attempts_before: self.attempts,
            next_attempt_at: Some(now),
            crashes: crash::released(self.crashes),
            ..self
        }
    }

    /// Whether it may be what ended a process: nothing else is under way at the endpoint while it is attempted.
    pub fn goes_alone(&self) -> bool {
        self.crashes > 0
    }

    /// The IRN it is about, where there is one.
    pub fn irn(&self) -> Option<&str> {
        (self.order_key != self.event_id.to_string()).then_some(&self.order_key)
    }

    /// Attempts made of those that the schedule has.
    pub fn attempts_of_schedule(&self) -> u32 {
        self.attempts.saturating_sub(self.attempts_before)
    }
}

/// What came of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttempt {
    pub at: Timestamp,
    pub status: Option<u16>,
    /// A class such as `timeout` or `status`; none on success.
    pub failure: Option<String>,
    pub duration_ms: i64,
    pub phases: PhaseDurations,
    /// The beginning of the answer's body.
    pub response: String,
}

/// How long each part of an attempt took, in milliseconds; none for a part that did not take place, such as
/// connecting where a connection was open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhaseDurations {
    pub dns_ms: Option<i64>,
    pub connect_ms: Option<i64>,
    pub wait_ms: Option<i64>,
    pub read_ms: Option<i64>,
}

words! {
    /// How notifications are signed: with a secret that both sides have, or with a key pair whose private key
    /// never leaves this service.
    SecretType { Hmac = "hmac", Ed25519 = "ed25519" }
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
    /// The last event before it was last disabled; None where it never was.
    pub disabled_after: Option<i64>,
    /// What verifies the newest signature, where that is made with a key pair.
    pub public_key: Option<String>,
    /// The delay before each attempt, in seconds; None is the deployment's schedule.
    pub retry_schedule: Option<Vec<u32>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What is said about the retry schedule of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleChange {
    /// Nothing: it stays as it is.
    Keep,
    /// The deployment's.
    Shared,
    Own(Vec<u32>),
}

impl ScheduleChange {
    /// The schedule after it.
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

    /// Whether it is among the enabled events, in service or not.
    pub fn names(&self, kind: EventKind) -> bool {
        self.enabled_events.iter().any(|name| name == kind.as_str())
    }

    /// The events that it names, whether it is active or not.
    pub fn enabled_kinds(&self) -> Vec<EventKind> {
        EventKind::ALL.iter().copied().filter(|kind| self.names(*kind)).collect()
    }

    /// The names of the parts that differ from those before; of a new endpoint those that were set.
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

    /// In service again, for whatever reason it was not.
    #[must_use]
    pub fn enabled(self, now: Timestamp) -> Self {
        Self { is_active: true, disabled_reason: None, updated_at: now, ..self }
    }
}
