//! The activity of an account: who did what (docs/contract.md, "Added paths").

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise_time;
use crate::http::views::actor::ActorView;
use crate::store::operations::activity::{ActivityCursor, ActivityEntry};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Activity)]
pub(crate) struct ActivityView {
    entries: Vec<EntryView>,
    /// Value for the parameter `cursor` of the next page; null on the last page.
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ActivityEntry)]
struct EntryView {
    at: String,
    actor: ActorView,
    /// An event such as `invoice.status-updated`, or an action such as `taxpayer.rotate-key`.
    action: String,
    /// For an event the IRN, for an action the id of the object that was acted on; null if there is none.
    subject: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

impl ActivityView {
    pub(crate) fn new(entries: Vec<ActivityEntry>, next: Option<ActivityCursor>) -> Self {
        let entries = entries.into_iter().map(EntryView::from).collect();
        Self {
            entries,
            next_cursor: next.map(|next| next.to_string()),
        }
    }
}

impl From<ActivityEntry> for EntryView {
    fn from(entry: ActivityEntry) -> Self {
        Self {
            at: precise_time(entry.at),
            actor: entry.actor.into(),
            action: entry.action,
            subject: entry.subject,
            from: entry.from,
            to: entry.to,
        }
    }
}
