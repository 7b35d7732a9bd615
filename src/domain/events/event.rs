//! The event log of a taxpayer. Sequence numbers have no gaps, and each event is hashed together with the hash of the
//! event before it. An appended event never changes.

use jiff::Timestamp;
use sha2::{Digest, Sha256};
use timing::CommandId;
use timing::trace::TraceContext;

use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::audit::NamedActor;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{EventId, TaxpayerId};

words! {
    /// The kinds of events (docs/contract.md, "Events").
    EventKind {
        InvoiceCreated = "invoice.created",
        InvoiceUpdated = "invoice.updated",
        InvoiceStatusUpdated = "invoice.status-updated",
        InvoiceValidated = "invoice.validated",
        InvoiceSubmitted = "invoice.submitted",
        InvoiceTransmitted = "invoice.transmitted",
        InvoiceAcknowledged = "invoice.acknowledged",
        InvoiceReported = "invoice.reported",
        InvoiceRejected = "invoice.rejected",
        InvoiceFailed = "invoice.failed",
        InvoiceBatchCompleted = "invoice.batch-completed",
        PaymentStatusUpdated = "payment.status-updated",
        SupplierInvoiceReceived = "supplier-invoice.received",
        SupplierInvoiceAcknowledged = "supplier-invoice.acknowledged",
        ApiKeyRotated = "api-key.rotated",
        TaxpayerVerified = "taxpayer.verified",
        TaxpayerUnverified = "taxpayer.unverified",
        AuthorityOutageStarted = "authority.outage-started",
        AuthorityOutageEnded = "authority.outage-ended",
        WebhookUpdated = "webhook.updated",
        WebhookTest = "webhook.test",
    }
}

/// An event before it is appended to the log.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    pub kind: EventKind,
    pub irn: Option<String>,
    /// The data of the event, as JSON text.
    pub data: String,
    /// The actor that caused the event.
    pub actor: Option<NamedActor>,
}

/// An event in a taxpayer's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: EventId,
    pub taxpayer_id: TaxpayerId,
    pub sequence: i64,
    pub kind: EventKind,
    pub timestamp: Timestamp,
    pub irn: Option<String>,
    /// The JSON text exactly as it was hashed.
    pub data: String,
    /// The JSON text of a `NamedActor` exactly as it was hashed; `None` for events from before actors were recorded.
    pub actor: Option<String>,
    pub hash: String,
    /// The id of the command that caused the event.
    pub command_id: CommandId,
    /// The trace of the request that caused the event. The hash does not cover it.
    pub trace: Option<TraceContext>,
}

/// The head of a taxpayer's log: the sequence and the hash of its last event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogHead {
    pub sequence: i64,
    pub hash: String,
}

impl Default for LogHead {
    fn default() -> Self {
        Self {
            sequence: 0,
            hash: hex::encode([0; 32]),
        }
    }
}

/// The data that identifies a new event. Its sequence and its hash come from the log.
#[derive(Debug, Clone, Copy)]
pub struct EventStamp {
    pub id: EventId,
    pub taxpayer_id: TaxpayerId,
    pub command_id: CommandId,
    pub trace: Option<TraceContext>,
    pub now: Timestamp,
}

impl LogHead {
    /// Appends an event to the log: gives it the next sequence and its hash, and makes it the head of the log.
    pub fn append(&mut self, occurrence: NewEvent, stamp: EventStamp) -> Event {
        let mut event = Event {
            id: stamp.id,
            taxpayer_id: stamp.taxpayer_id,
            sequence: self.sequence + 1,
            kind: occurrence.kind,
            timestamp: stamp.now,
            irn: occurrence.irn,
            data: occurrence.data,
            // Serialisation cannot fail, because an actor holds only words and texts.
            actor: occurrence
                .actor
                .map(|actor| serde_json::to_string(&actor).unwrap_or_default()),
            hash: String::new(),
            command_id: stamp.command_id,
            trace: stamp.trace,
        };
        event.hash = event.hash_after(&self.hash);
        *self = Self {
            sequence: event.sequence,
            hash: event.hash.clone(),
        };
        event
    }

    /// Returns true if the event is the next event of this log. In this case the head moves to the event.
    pub fn advance_if_next(&mut self, event: &Event) -> bool {
        let follows =
            event.sequence == self.sequence + 1 && event.hash == event.hash_after(&self.hash);
        if follows {
            *self = Self {
                sequence: event.sequence,
                hash: event.hash.clone(),
            };
        }
        follows
    }
}

impl Event {
    /// Returns the SHA-256 in hexadecimal over the previous hash and the event's fields, one on each line. The line of
    /// the actor is there only if the event has one. JSON text has no line breaks, so no other event has the same
    /// lines.
    fn hash_after(&self, previous: &str) -> String {
        let actor = self
            .actor
            .as_ref()
            .map(|actor| format!("\n{actor}"))
            .unwrap_or_default();
        let text = format!(
            "{previous}\n{}\n{}\n{}\n{}\n{}\n{}\n{}{actor}",
            self.taxpayer_id,
            self.sequence,
            self.id,
            self.kind,
            precise_time(self.timestamp),
            self.irn.as_deref().unwrap_or_default(),
            self.data
        );
        hex::encode(Sha256::digest(text))
    }

    /// Returns the JSON text for webhooks. With the event's hash, a receiver can detect a rewritten log.
    pub fn notification_json(&self) -> String {
        // The event of a test notification is not in a log and has no hash.
        let hash = if self.hash.is_empty() {
            String::new()
        } else {
            format!(r#""hash":"{}","#, self.hash)
        };
        let actor = self
            .actor
            .as_ref()
            .map(|actor| format!(r#""actor":{actor},"#))
            .unwrap_or_default();
        // `actor` and `data` are inserted exactly as they were hashed. The other values need no JSON escaping.
        format!(
            r#"{{"id":"{}","type":"{}","timestamp":"{}","sequence":{},"taxpayer_id":{},{hash}{actor}"data":{}}}"#,
            self.id,
            self.kind,
            precise_time(self.timestamp),
            self.sequence,
            self.taxpayer_id,
            self.data
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::domain::kernel::audit::{Actor, ActorWithName};

    fn log(count: u128) -> Vec<Event> {
        let mut head = LogHead::default();
        (1..=count)
            .map(|n| {
                let occurrence = NewEvent {
                    kind: EventKind::InvoiceCreated,
                    irn: Some(format!("I{n}")),
                    data: json!({ "n": n.to_string() }).to_string(),
                    // The first event has no actor, like events from before actors were recorded.
                    actor: (n > 1)
                        .then(|| NamedActor::from(&ActorWithName::from(Actor::Operator(7)))),
                };
                let id = Uuid::from_u128(n);
                head.append(
                    occurrence,
                    EventStamp {
                        id,
                        taxpayer_id: TaxpayerId(7),
                        command_id: id,
                        trace: None,
                        now: Timestamp::UNIX_EPOCH,
                    },
                )
            })
            .collect()
    }

    fn count_verified(events: &[Event]) -> usize {
        let mut head = LogHead::default();
        events
            .iter()
            .take_while(|event| head.advance_if_next(event))
            .count()
    }

    #[test]
    fn a_log_is_gapless_and_verifies() {
        let events = log(5);
        assert_eq!(
            events.iter().map(|e| e.sequence).collect::<Vec<_>>(),
            [1, 2, 3, 4, 5]
        );
        assert_eq!(count_verified(&events), 5);
    }

    #[test]
    fn any_change_to_an_event_breaks_the_chain_there() {
        for change in 0..7 {
            let mut events = log(4);
            let event = &mut events[2];
            match change {
                0 => event.data = r#"{"n":"9"}"#.into(),
                1 => event.kind = EventKind::InvoiceUpdated,
                2 => event.irn = None,
                3 => event.timestamp = Timestamp::MAX,
                4 => event.actor = None,
                5 => event.actor = event.actor.as_ref().map(|actor| actor.replace('7', "8")),
                _ => event.taxpayer_id = TaxpayerId(8),
            }
            assert_eq!(count_verified(&events), 2, "change {change}");
        }
        let mut events = log(4);
        events.remove(1);
        assert_eq!(count_verified(&events), 1, "a missing event");
    }

    #[test]
    fn a_notification_is_json_with_the_fields_of_the_contract() {
        let body: Value = strict_json::from_trusted(&log(1)[0].notification_json()).unwrap();
        let fields: Vec<_> = body.as_object().unwrap().keys().cloned().collect();
        assert_eq!(
            fields,
            [
                "data",
                "hash",
                "id",
                "sequence",
                "taxpayer_id",
                "timestamp",
                "type"
            ]
        );
        assert_eq!(body["data"], json!({ "n": "1" }));
        let body: Value = strict_json::from_trusted(&log(2)[1].notification_json()).unwrap();
        assert_eq!(
            body["actor"],
            json!({ "kind": "operator", "id": "7", "name": null })
        );
    }
}
