//! A quarantined command, as operators see it. Its contents are never shown.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise;
use crate::domain::quarantine::{QuarantineState, QuarantinedCommand};

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = QuarantinedCommand)]
pub(crate) struct QuarantinedCommandView<'a> {
    /// The id of the command. The log names it in the line of the error.
    reference: String,
    actor: &'a str,
    command: &'a str,
    taxpayer_id: Option<i64>,
    at: String,
    panic: &'a str,
    #[schema(value_type = String)]
    state: QuarantineState,
    /// Time of the last replay or of the drop.
    moved_at: Option<String>,
    /// How the last replay ended.
    result: Option<&'a str>,
    may_replay: bool,
    /// What an operator can do, or why the command cannot be replayed.
    guidance: &'static str,
}

impl<'a> From<&'a QuarantinedCommand> for QuarantinedCommandView<'a> {
    fn from(found: &'a QuarantinedCommand) -> Self {
        Self {
            reference: found.reference.to_string(),
            actor: &found.actor,
            command: &found.command,
            taxpayer_id: found.taxpayer_id.map(|taxpayer| taxpayer.0),
            at: precise(found.at),
            panic: &found.panic,
            state: found.state,
            moved_at: found.moved_at.map(precise),
            result: found.result.as_deref(),
            may_replay: found.may_replay(),
            guidance: found.guidance(),
        }
    }
}
