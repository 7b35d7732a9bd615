//! The event feed: a taxpayer's event log, ordered by sequence number (docs/contract.md, "Added paths").

use database::StoreError;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::events::event::{Event, EventKind};
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::audit::NamedActor;
use crate::domain::kernel::ids::EventId;
use crate::http::openapi::event_schemas::logged_events_schema;
use crate::http::views::actor::ActorView;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventFeed)]
pub(crate) struct Feed {
    #[schema(schema_with = logged_events_schema)]
    events: Vec<EventView>,
    /// Sequence number from which the next request continues: the value for the parameter `after`.
    next_after: i64,
    has_more: bool,
}

/// An event of the log. Its schema, which depends on its kind, is made by `event_schemas`.
#[derive(Debug, Serialize)]
struct EventView {
    id: EventId,
    r#type: EventKind,
    sequence: i64,
    timestamp: String,
    irn: Option<String>,
    /// The actor that caused the event; null for old events, for which no actor was stored.
    actor: Option<ActorView>,
    data: Value,
    hash: String,
}

impl Feed {
    /// Creates a page of the feed from the events after the sequence number `after`. `has_more` is true if further
    /// events follow this page.
    pub(crate) fn new(events: Vec<Event>, after: i64, has_more: bool) -> Result<Self, StoreError> {
        let next_after = events.last().map_or(after, |event| event.sequence);
        let events = events
            .into_iter()
            .map(EventView::try_from)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            events,
            next_after,
            has_more,
        })
    }
}

impl TryFrom<Event> for EventView {
    type Error = StoreError;

    fn try_from(event: Event) -> Result<Self, StoreError> {
        let data = strict_json::from_trusted(&event.data).map_err(|fault| StoreError::Corrupt {
            table: "events",
            id: event.id.to_string(),
            reason: fault.to_string(),
        })?;
        Ok(Self {
            id: event.id,
            r#type: event.kind,
            sequence: event.sequence,
            timestamp: precise_time(event.timestamp),
            irn: event.irn,
            actor: event
                .actor
                .as_deref()
                .and_then(NamedActor::parse)
                .map(ActorView::from),
            data,
            hash: event.hash,
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::domain::events::event::{EventStamp, LogHead, NewEvent};
    use crate::domain::kernel::ids::TaxpayerId;

    fn sealed_events(count: u128) -> Vec<Event> {
        let mut head = LogHead::default();
        let stamp = |n| EventStamp {
            id: Uuid::from_u128(n),
            taxpayer_id: TaxpayerId(7),
            command_id: Uuid::nil(),
            trace: None,
            now: Timestamp::UNIX_EPOCH,
        };
        let occurrence = || NewEvent {
            kind: EventKind::InvoiceCreated,
            irn: None,
            data: json!({ "a": 1.50 }).to_string(),
            actor: None,
        };
        (1..=count)
            .map(|n| head.append(occurrence(), stamp(n)))
            .collect()
    }

    #[test]
    fn a_feed_says_where_its_next_page_begins() {
        let feed = Feed::new(sealed_events(2), 0, true).unwrap();
        assert_eq!(
            (feed.events.len(), feed.next_after, feed.has_more),
            (2, 2, true)
        );
        let end = Feed::new(vec![], 9, false).unwrap();
        assert_eq!((end.next_after, end.has_more), (9, false));
    }

    #[test]
    fn the_data_of_an_event_is_sent_as_it_was_hashed() {
        let text = sealed_events(1)[0].data.clone();
        let feed = serde_json::to_string(&Feed::new(sealed_events(1), 0, false).unwrap()).unwrap();
        assert!(feed.contains(&text), "{feed}");
    }
}
