//! The position of a run in the queue. `/v1/app` shows it in responses about an unfinished run that continues by
//! itself.

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::actors::pipeline::queue_position::QueuePosition;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::pipeline::Run;
use crate::http::respond::details::Members;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Queue)]
#[serde(into = "Members")]
pub(crate) struct QueueView {
    /// Position in the queue. The run with position 1 is next.
    position: u64,
    /// Estimated time at which the run ends, if the queue goes on at the current speed.
    predicted_clear_at: String,
    /// Time by which the law requires the invoice to be at the authority.
    deadline_at: String,
}

impl QueueView {
    pub(crate) fn new(run: &Run, place: QueuePosition) -> Self {
        Self {
            position: place.position,
            predicted_clear_at: precise_time(place.predicted_clear_at),
            deadline_at: precise_time(run.deadline_at),
        }
    }
}

impl From<QueueView> for Members {
    fn from(view: QueueView) -> Self {
        Self::from([
            ("position", json!(view.position)),
            ("predicted_clear_at", json!(view.predicted_clear_at)),
            ("deadline_at", json!(view.deadline_at)),
        ])
    }
}
