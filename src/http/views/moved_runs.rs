//! The result of a bulk move of runs.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::operator_action::OperatorAction;

/// A refused run is one that changed meanwhile, or that took effect at the authority and cannot be cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MovedRuns {
    pub(crate) action: OperatorAction,
    pub(crate) preview: bool,
    /// Number of runs that match the filter and are in a state that allows the action.
    pub(crate) matching: u64,
    /// Number of runs that were moved. In a preview, the number that would be moved by one call.
    pub(crate) moved: usize,
    /// Number of runs that refused the action.
    pub(crate) refused: usize,
    /// The first of the refused runs.
    pub(crate) refusals: Vec<RunRefusal>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunRefusal {
    #[schema(value_type = uuid::Uuid)]
    pub(crate) id: RunId,
    pub(crate) message: String,
}
