//! Work in quarantine (set aside after repeated panics or crashes), as operators see it. The contents of a command are
//! never shown.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::quarantine::{QuarantineState, QuarantinedWork, WorkKind};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuarantinedWork)]
pub(crate) struct QuarantinedWorkView<'a> {
    #[schema(value_type = String)]
    kind: WorkKind,
    /// The id of the command, run or delivery, or the lane of the task. Log lines about a command contain its id.
    reference: &'a str,
    /// The command, the operation of the run, the event of the delivery or the kind of the task.
    name: &'a str,
    taxpayer_id: Option<i64>,
    /// The actor of the command, the IRN of the run, or the key by which the delivery is ordered: its IRN if it has
    /// one.
    about: Option<&'a str>,
    /// Time at which the work was quarantined; for a task, time of its next attempt.
    at: String,
    cause: &'a str,
    #[schema(value_type = String)]
    state: QuarantineState,
    /// Time of the last replay or of the drop.
    moved_at: Option<String>,
    /// Outcome of the last replay; null if there was none.
    result: Option<&'a str>,
    /// Path of the POST request that retries the work; null if that is not possible.
    replay: Option<String>,
    /// Path of the POST request that drops the work, so that it is not tried again; null if that is not possible.
    drop: Option<String>,
    /// Says what an operator can do, or why nothing can be done.
    guidance: &'a str,
}

impl<'a> From<&'a QuarantinedWork> for QuarantinedWorkView<'a> {
    fn from(work: &'a QuarantinedWork) -> Self {
        let reference = &work.reference;
        let (replay, drop) = match work.kind {
            WorkKind::Command => (
                Some(format!("/ops/quarantine/{reference}/replay")),
                Some(format!("/ops/quarantine/{reference}/drop")),
            ),
            WorkKind::Run => (
                Some(format!("/ops/pipeline/runs/{reference}/retry")),
                Some(format!("/ops/pipeline/runs/{reference}/cancel")),
            ),
            WorkKind::Delivery => (
                Some(format!("/ops/webhooks/dead-letters/{reference}/replay")),
                Some(format!("/ops/quarantine/{reference}/drop")),
            ),
            WorkKind::Task => (None, None),
        };
        Self {
            kind: work.kind,
            reference,
            name: &work.name,
            taxpayer_id: work.taxpayer_id.map(|taxpayer| taxpayer.0),
            about: work.about.as_deref(),
            at: precise_time(work.at),
            cause: &work.cause,
            state: work.state,
            moved_at: work.moved_at.map(precise_time),
            result: work.result.as_deref(),
            replay: replay.filter(|_| work.may_replay),
            drop: drop.filter(|_| work.may_drop),
            guidance: &work.guidance,
        }
    }
}
