//! An outage of the authority, as operators see it.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::ids::OutageId;
use crate::domain::outage::{Outage, OutageEdge};
use crate::store::operations::outages::{NotifiedCounts, OutageEvent};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Outage)]
pub(crate) struct OutageView<'a> {
    #[schema(value_type = uuid::Uuid)]
    id: OutageId,
    operations: Vec<&'a str>,
    started_at: String,
    ended_at: Option<String>,
    /// Duration in whole seconds. For an ongoing outage, the duration until now.
    duration_s: i64,
    announced: NotificationCounts,
}

/// Number of taxpayers that were notified of the start (`started`) and of the end (`ended`) of the outage. `under_way`
/// is the one of these two notifications that is still being sent; null if none is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Announced)]
struct NotificationCounts {
    started: u64,
    ended: u64,
    under_way: Option<OutageEdge>,
}

impl<'a> OutageView<'a> {
    pub(crate) fn new(
        outage: &'a Outage,
        notified: &NotifiedCounts,
        queued: &HashSet<OutageEvent>,
        now: Timestamp,
    ) -> Self {
        let event = |edge| OutageEvent {
            outage: outage.id,
            edge,
        };
        let count = |edge| notified.get(&event(edge)).copied().unwrap_or(0);
        Self {
            id: outage.id,
            operations: outage.operations(),
            started_at: precise_time(outage.started_at),
            ended_at: outage.ended_at.map(precise_time),
            duration_s: outage.duration_s(now),
            announced: NotificationCounts {
                started: count(OutageEdge::Started),
                ended: count(OutageEdge::Ended),
                under_way: OutageEdge::ALL
                    .iter()
                    .copied()
                    .find(|edge| queued.contains(&event(*edge))),
            },
        }
    }
}
