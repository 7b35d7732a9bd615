//! The result of a bulk move: one operator action, such as a retry, on all runs that match a filter.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::pipeline::OperatorAction;

/// The result of an operator action on many runs. The action is refused for a run that has changed meanwhile, or that
/// has taken effect at the authority and can no longer be cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MovedRuns {
    pub(crate) action: OperatorAction,
    pub(crate) preview: bool,
    /// Number of runs that match the filter and are in a state that allows the action.
    pub(crate) matching: u64,
    /// Number of runs that were moved. In a preview, the number that would be moved by one call.
    pub(crate) moved: usize,
    /// The ids of the runs that `moved` counts.
    #[schema(value_type = Vec<uuid::Uuid>)]
    pub(crate) ids: Vec<String>,
    /// Number of runs for which the action was refused.
    pub(crate) refused: usize,
    /// The first refused runs, with the reasons.
    pub(crate) refusals: Vec<RunRefusal>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunRefusal {
    #[schema(value_type = uuid::Uuid)]
    pub(crate) id: String,
    pub(crate) message: String,
}
