//! The timeline of an invoice: what happened to it, ordered by time (docs/contract.md, "Added paths").

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::timeline::{EntryKind, Timeline, TimelineEntry};
use crate::http::views::actor::ActorView;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timeline)]
pub(crate) struct TimelineView<'a> {
    irn: &'a str,
    entries: Vec<EntryView<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
struct EntryView<'a> {
    at: String,
    kind: EntryKind,
    name: &'a str,
    outcome: Option<&'a str>,
    attempt: Option<u32>,
    duration_ms: Option<i64>,
    /// The actor that caused an event; `service` for steps and deliveries. Null for old events, for which no actor was
    /// stored.
    actor: Option<ActorView>,
    /// Further facts about the entry. The kind of the entry determines which fields there are.
    detail: &'a Map<String, Value>,
}

impl<'a> TimelineView<'a> {
    pub(crate) fn new(irn: &'a Irn, timeline: &'a Timeline) -> Self {
        Self {
            irn: irn.as_str(),
            entries: timeline.entries.iter().map(EntryView::from).collect(),
        }
    }
}

impl<'a> From<&'a TimelineEntry> for EntryView<'a> {
    fn from(entry: &'a TimelineEntry) -> Self {
        Self {
            at: precise_time(entry.at),
            kind: entry.kind,
            name: &entry.name,
            outcome: entry.outcome.as_deref(),
            attempt: entry.attempt,
            duration_ms: entry.duration_ms,
            actor: entry.actor.clone().map(ActorView::from),
            detail: &entry.detail,
        }
    }
}
