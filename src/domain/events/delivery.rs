//! A delivery is one event to be sent to one endpoint. An endpoint gets each event at least once, and the events of one
//! IRN in order. A dead letter has used all its attempts and does not block later events.

use jiff::Timestamp;

use crate::domain::events::event::{Event, EventKind};
use crate::domain::kernel::codes::words;
use crate::domain::kernel::crash::CrashHistory;
use crate::domain::kernel::ids::{EndpointKey, EventId, TaxpayerId};

words! {
    DeliveryState { Pending = "pending", Delivered = "delivered", Dead = "dead" }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: uuid::Uuid,
    pub taxpayer_id: TaxpayerId,
    pub endpoint: EndpointKey,
    pub event_id: EventId,
    pub sequence: i64,
    /// The IRN of the event, or the event id if there is none. Deliveries with the same key are sent in order.
    pub order_key: String,
    pub state: DeliveryState,
    /// The number of attempts made so far.
    pub attempts: u32,
    /// The value of `attempts` at the last replay, which starts the retry schedule again.
    pub attempts_before: u32,
    pub next_attempt_at: Option<Timestamp>,
    /// The crashes and panics since the last attempt that ended.
    pub crash_history: CrashHistory,
}

impl Delivery {
    /// Creates a delivery to this endpoint that is due at once.
    pub fn for_event(id: uuid::Uuid, endpoint: EndpointKey, event: &Event, now: Timestamp) -> Self {
        Self {
            id,
            taxpayer_id: event.taxpayer_id,
            endpoint,
            event_id: event.id,
            sequence: event.sequence,
            order_key: event.irn.clone().unwrap_or_else(|| event.id.to_string()),
            state: DeliveryState::Pending,
            attempts: 0,
            attempts_before: 0,
            next_attempt_at: Some(now),
            crash_history: CrashHistory::default(),
        }
    }

    /// True if this delivery was in flight at a crash. The id of such a delivery is recorded in the endpoint's lane
    /// before its next attempt begins.
    pub fn is_suspect(&self) -> bool {
        self.crash_history.is_suspect()
    }

    /// True if this delivery was in flight at two crashes. During its attempts no other delivery to the endpoint is in
    /// flight.
    pub fn must_run_alone(&self) -> bool {
        self.crash_history.must_run_alone()
    }

    pub fn irn(&self) -> Option<&str> {
        (self.order_key != self.event_id.to_string()).then_some(&self.order_key)
    }

    /// Returns the number of attempts since the last replay, which is the position in the retry schedule.
    pub fn schedule_attempts(&self) -> u32 {
        self.attempts.saturating_sub(self.attempts_before)
    }
}

/// The result of one attempt at a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttempt {
    pub at: Timestamp,
    pub status: Option<u16>,
    /// The class of the failure, such as `timeout` or `status`; `None` on success.
    pub failure: Option<String>,
    pub duration_ms: i64,
    pub phases: PhaseDurations,
    /// The beginning of the response body.
    pub response: String,
    /// `None` for an attempt that was made before headers were stored, and if the headers were not loaded.
    pub headers: Option<AttemptHeaders>,
}

/// The headers of the request and of the response of an attempt, each a name and a value, without secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AttemptHeaders {
    pub request: Vec<(String, String)>,
    pub response: Vec<(String, String)>,
}

/// The duration of each phase of an attempt, in milliseconds. A phase that did not happen is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhaseDurations {
    pub dns_ms: Option<i64>,
    pub connect_ms: Option<i64>,
    pub wait_ms: Option<i64>,
    pub read_ms: Option<i64>,
}

words! {
    /// Notifications are signed with a secret shared with the receiver, or with a key pair whose public key the
    /// receiver gets.
    SecretType { Hmac = "hmac", Ed25519 = "ed25519" }
}

/// The maximum number of endpoints that a taxpayer may have in addition to its default endpoint.
pub const ADDED_ENDPOINTS_MAX: usize = 10;

/// A webhook endpoint of a taxpayer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub id: i64,
    pub key: EndpointKey,
    pub taxpayer_id: TaxpayerId,
    pub url: String,
    pub description: Option<String>,
    /// The event names that the caller sent. They may include unknown names, which match no event.
    pub enabled_events: Vec<String>,
    pub is_active: bool,
    pub disabled_reason: Option<String>,
    /// The sequence of the newest event at the time when the endpoint was last disabled. The replay of missed events
    /// starts after it.
    pub disabled_after: Option<i64>,
    /// The public key that verifies signatures made with the newest secret; `None` if this secret is not a key pair.
    pub public_key: Option<String>,
    /// The delay before each attempt, in seconds; `None` means the schedule of the deployment.
    pub retry_schedule: Option<Vec<u32>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A change of an endpoint's retry schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleChange {
    Keep,
    /// Use the schedule of the deployment again.
    Shared,
    Own(Vec<u32>),
}

impl ScheduleChange {
    /// Returns the endpoint's own schedule after the change; `None` means the schedule of the deployment.
    pub fn apply_to(self, before: Option<Vec<u32>>) -> Option<Vec<u32>> {
        match self {
            Self::Keep => before,
            Self::Shared => None,
            Self::Own(delays) => Some(delays),
        }
    }
}

impl Endpoint {
    /// Creates the default endpoint of a taxpayer, active and without any events.
    pub fn new(id: i64, taxpayer_id: TaxpayerId, url: String, now: Timestamp) -> Self {
        Self {
            id,
            key: taxpayer_id.into(),
            taxpayer_id,
            url,
            description: None,
            enabled_events: Vec::new(),
            is_active: true,
            disabled_reason: None,
            disabled_after: None,
            public_key: None,
            retry_schedule: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Creates an endpoint in addition to the default one, active and without any events.
    pub fn new_beside_default(
        id: i64,
        taxpayer_id: TaxpayerId,
        url: String,
        now: Timestamp,
    ) -> Self {
        Self {
            key: EndpointKey::for_added(id),
            ..Self::new(id, taxpayer_id, url, now)
        }
    }

    pub fn must_receive(&self, kind: EventKind) -> bool {
        self.is_active && self.has_enabled(kind)
    }

    /// True if the endpoint has enabled events of this kind. It does not matter whether the endpoint is active.
    pub fn has_enabled(&self, kind: EventKind) -> bool {
        self.enabled_events.iter().any(|name| name == kind.as_str())
    }

    /// Returns the kinds of events that the endpoint has enabled. It does not matter whether the endpoint is active.
    pub fn enabled_kinds(&self) -> Vec<EventKind> {
        EventKind::ALL
            .iter()
            .copied()
            .filter(|kind| self.has_enabled(*kind))
            .collect()
    }

    /// Returns the API names of the settings that differ from `before`. For a new endpoint (`None`), returns those that
    /// have a value.
    pub fn changed_fields_since(&self, before: Option<&Self>) -> Vec<&'static str> {
        let before = before.cloned().unwrap_or_else(|| Self {
            url: String::new(),
            description: None,
            enabled_events: Vec::new(),
            retry_schedule: None,
            ..self.clone()
        });
        [
            ("webhook_url", self.url != before.url),
            (
                "enabled_events",
                self.enabled_events != before.enabled_events,
            ),
            (
                "retry_schedule_s",
                self.retry_schedule != before.retry_schedule,
            ),
            ("is_active", self.is_active != before.is_active),
            ("description", self.description != before.description),
        ]
        .into_iter()
        .filter_map(|(name, is_changed)| is_changed.then_some(name))
        .collect()
    }

    /// Makes the endpoint active and clears the reason for which it was disabled.
    #[must_use]
    pub fn enable(self, now: Timestamp) -> Self {
        Self {
            is_active: true,
            disabled_reason: None,
            updated_at: now,
            ..self
        }
    }
}
