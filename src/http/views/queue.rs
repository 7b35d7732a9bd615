//! The position of a run in the queue. `/v1/app` shows it in responses about an unfinished run that continues by
//! itself.

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::pipeline::Run;
use crate::domain::pipeline::waiting::QueuePlace;
use crate::http::respond::details::Members;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Queue)]
#[serde(into = "Members")]
pub(crate) struct QueueView {
    /// Position in the queue. The run with position 1 is next.
    position: u64,
    /// Estimated time at which the run ends, if the queue moves on at its current speed.
    predicted_clear_at: String,
    /// Earliest time at which the run is expected to end.
    earliest_clear_at: String,
    /// Latest time at which the run is expected to end; null during an outage of the authority, whose end nobody knows.
    latest_clear_at: Option<String>,
    /// The median error of the last 20 predictions, in percent of the time that the predicted runs took in fact; null
    /// if there were no predictions yet.
    prediction_error_percent: Option<u64>,
    /// Time by which the law requires the invoice to be at the authority.
    deadline_at: String,
}

impl QueueView {
    pub(crate) fn new(run: &Run, place: QueuePlace) -> Self {
        let prediction = place.end.prediction;
        Self {
            position: place.position,
            predicted_clear_at: precise_time(prediction.expected),
            earliest_clear_at: precise_time(prediction.earliest),
            latest_clear_at: prediction.latest.map(precise_time),
            prediction_error_percent: place
                .end
                .median_prediction_error
                .map(|error| error.median_percent),
            deadline_at: precise_time(run.deadline_at),
        }
    }
}

impl From<QueueView> for Members {
    fn from(view: QueueView) -> Self {
        Self::from([
            ("position", json!(view.position)),
            ("predicted_clear_at", json!(view.predicted_clear_at)),
            ("earliest_clear_at", json!(view.earliest_clear_at)),
            ("latest_clear_at", json!(view.latest_clear_at)),
            (
                "prediction_error_percent",
                json!(view.prediction_error_percent),
            ),
            ("deadline_at", json!(view.deadline_at)),
        ])
    }
}
