//! Work in quarantine, as operators see it. The contents of a command are never shown.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise;
use crate::domain::quarantine::{QuarantineState, QuarantinedWork, WorkKind};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuarantinedWork)]
pub(crate) struct QuarantinedWorkView<'a> {
    #[schema(value_type = String)]
    kind: WorkKind,
    /// The id of the command, run or delivery; the lane of a task. The log names a command by it.
    reference: &'a str,
    /// The command, the operation of the run, the event of the delivery or the kind of the task.
    name: &'a str,
    taxpayer_id: Option<i64>,
    /// The actor of the command, the IRN of the run, or the key that orders the delivery, which is its IRN if it has one.
    about: Option<&'a str>,
    /// When it was put aside. Of a task: when it is tried next.
    at: String,
    cause: &'a str,
    #[schema(value_type = String)]
    state: QuarantineState,
    /// Time of the last replay or of the drop.
    moved_at: Option<String>,
    /// How the last replay ended.
    result: Option<&'a str>,
    /// The path to post to, to have it tried again.
    replay: Option<String>,
    /// The path to post to, to have it never tried again.
    drop: Option<String>,
    /// What an operator can do, or why nothing can be done.
    guidance: &'a str,
}

impl<'a> From<&'a QuarantinedWork> for QuarantinedWorkView<'a> {
    fn from(found: &'a QuarantinedWork) -> Self {
        let reference = &found.reference;
        let (replay, drop) = match found.kind {
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
            kind: found.kind,
            reference,
            name: &found.name,
            taxpayer_id: found.taxpayer_id.map(|taxpayer| taxpayer.0),
            about: found.about.as_deref(),
            at: precise(found.at),
            cause: &found.cause,
            state: found.state,
            moved_at: found.moved_at.map(precise),
            result: found.result.as_deref(),
            replay: replay.filter(|_| found.may_replay),
            drop: drop.filter(|_| found.may_drop),
            guidance: &found.guidance,
        }
    }
}
