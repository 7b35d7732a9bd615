//! The position of a run in the queue, shown in every 202 and 503 of the access point surface.

use serde::Serialize;
use utoipa::ToSchema;

use crate::actors::pipeline::queue_position::QueuePosition;
use crate::domain::invoice::invoice_view::precise;
use crate::domain::pipeline::Run;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Queue)]
pub(crate) struct QueueView {
    /// 1 is who is next.
    position: u64,
    /// When the run should have come to its end, at the present pace.
    predicted_clear_at: String,
    /// By when the law wants the invoice to be with the authority.
    deadline_at: String,
}

impl QueueView {
    pub(crate) fn new(run: &Run, place: QueuePosition) -> Self {
        Self {
            position: place.position,
            predicted_clear_at: precise(place.predicted_clear_at),
            deadline_at: precise(run.deadline_at),
        }
    }
}
