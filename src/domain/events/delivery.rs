//! A delivery is one event to be sent to one endpoint. An endpoint gets each event at least once, and the events of one
//! IRN in order. A dead letter has used all its attempts and does not block later events.

use jiff::Timestamp;

use crate::domain::events::event::Event;
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
    /// The number of attempts that do not count in the retry schedule: those before the last replay, those that a crash
    /// interrupted, and probes that were sent before their time.
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

    /// True if this delivery was in flight at a crash of the process. The id of such a delivery is recorded in the row
    /// of the endpoint's lane before the next attempt begins, so that a further crash is counted for this delivery.
    pub fn is_crash_suspect(&self) -> bool {
        self.crash_history.is_crash_suspect()
    }

    /// True if this delivery was in flight at two crashes. During its attempts no other delivery to the endpoint is in
    /// flight.
    pub fn must_run_alone(&self) -> bool {
        self.crash_history.must_run_alone()
    }

    /// True if the retry schedule plans the next attempt for a later time than `at`.
    pub fn is_scheduled_after(&self, at: Timestamp) -> bool {
        self.next_attempt_at.is_some_and(|next| next > at)
    }

    pub fn irn(&self) -> Option<&str> {
        (self.order_key != self.event_id.to_string()).then_some(&self.order_key)
    }

    /// Returns the number of attempts that count in the retry schedule, which is the position in it.
    pub fn attempts_since_replay(&self) -> u32 {
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
