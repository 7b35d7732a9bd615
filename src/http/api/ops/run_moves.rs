//! Pauses, resumes, retries or cancels ("moves") all runs that match a filter. Each run is moved by its own command, so
//! the audit log has an entry for each run, in addition to the entry for the bulk move.

use actix_web::web;
use futures_util::{StreamExt, stream};

use crate::actors::taxpayer::commands::ApplyOperatorAction;
use crate::domain::access::caller::OpsOperator;
use crate::domain::kernel::audit::{AuditAction, OperatorRequest};
use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::{OperatorAction, RunState};
use crate::http::api::ops::bulk::{BulkActionEntry, BulkOutcome, BulkRefusal, SUBJECTS_MAX};
use crate::http::extract::body::Body;
use crate::http::forms::reader;
use crate::http::forms::run_filter::{self, BulkMove};
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::moved_runs::{MovedRuns, RunRefusal};
use crate::store::runs::run_list::{self, RunFilter};

/// The number of runs that are loaded at a time, because their documents may be large.
const RUNS_PER_CHUNK: usize = 50;
/// The number of runs that are moved at the same time: enough for several moves to share a commit, and few enough to
/// leave room for other requests.
const CONCURRENT_MOVES_MAX: usize = 16;
/// The maximum number of refused runs that the response lists. Further refused runs are only counted.
const REFUSALS_SHOWN_MAX: usize = 20;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/pipeline/runs/move").post(move_runs, || {
        doc("move_runs", "Pause, resume, retry or cancel all runs that match a filter")
            .with_note(
                "A call moves 1,000 runs at most, the oldest first; `matching` says how many there are. With `preview` \
                 nothing is changed. Send the `ids` of the preview in `filter.ids` to move no other run than these.",
            )
            .with_body(run_filter::read_bulk_move, example!("move_runs"))
            .with_response::<MovedRuns>(200, "Pipeline runs moved successfully")
    })]
}

/// POST /ops/pipeline/runs/move: an operator moves the runs that match a filter, or counts them.
async fn move_runs(
    state: web::Data<ApiState>,
    OpsOperator(operator_id): OpsOperator,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        run_filter::read_bulk_move,
    )?;
    let BulkMove {
        action,
        filter,
        is_preview,
        reason,
    } = form.value;
    let matches = find_movable_runs(&state, &filter, action).await?;
    let by = OperatorRequest {
        operator_id,
        reason,
    };
    let mut outcome = if is_preview {
        preview_moves(&state, &matches.ids, action).await?
    } else {
        let outcome = apply_moves(&state, &matches.ids, action, &by).await;
        let audit_entry = BulkActionEntry {
            action: AuditAction::MoveRuns,
            action_name: action.as_str(),
            selection: run_filter::describe_filter(&filter),
        };
        outcome.record_in_audit(&state, audit_entry, &by).await?;
        outcome
    };
    if let Some(failure) = outcome.failure {
        return Err(failure);
    }
    let refused = outcome.refusals.len();
    outcome.refusals.truncate(REFUSALS_SHOWN_MAX);
    let view = MovedRuns {
        action,
        preview: is_preview,
        matching: matches.matching,
        moved: outcome.moved.len(),
        ids: outcome.moved,
        refused,
        refusals: outcome.refusals.into_iter().map(RunRefusal::from).collect(),
    };
    let message = if is_preview {
        "Pipeline runs counted successfully"
    } else {
        "Pipeline runs moved successfully"
    };
    Ok(ApiResponse::ok(message, view).warn(&form.warnings))
}

/// The runs that match a filter and are in a state that allows the action: the ids of the oldest runs, and the number
/// of all matching runs.
pub(crate) struct MatchingRuns {
    pub(crate) ids: Vec<RunId>,
    pub(crate) matching: u64,
}

/// Finds the runs that match the filter and are in a state that allows the action.
pub(crate) async fn find_movable_runs(
    state: &ApiState,
    filter: &RunFilter,
    action: OperatorAction,
) -> Result<MatchingRuns, ApiError> {
    let now = state.now();
    let all = RunState::ALL.iter().copied();
    let states: Vec<_> = all
        .filter(|state| state.after_action(action).is_some())
        .collect();
    Ok(MatchingRuns {
        matching: run_list::count(&state.store, filter, &states, now).await?,
        ids: run_list::load_ids(&state.store, filter, &states, now, SUBJECTS_MAX).await?,
    })
}

/// Returns the outcome that the action would have now, for a preview. Changes nothing.
pub(crate) async fn preview_moves(
    state: &ApiState,
    ids: &[RunId],
    action: OperatorAction,
) -> Result<BulkOutcome, ApiError> {
    let mut outcome = BulkOutcome::default();
    for chunk in ids.chunks(RUNS_PER_CHUNK) {
        for run in run_list::find_by_ids(&state.store, chunk).await? {
            match run.check_action(action) {
                Ok(()) => outcome.moved.push(run.id.to_string()),
                Err(refusal) => outcome.add_refusal(&run.id, refusal.to_string()),
            }
        }
    }
    Ok(outcome)
}

/// Moves the runs through their taxpayers' actors. Stops after the first chunk in which a run fails for another reason
/// than a refusal, such as a database error.
pub(crate) async fn apply_moves(
    state: &ApiState,
    ids: &[RunId],
    action: OperatorAction,
    by: &OperatorRequest,
) -> BulkOutcome {
    let mut outcome = BulkOutcome::default();
    for chunk in ids.chunks(RUNS_PER_CHUNK) {
        let runs = match run_list::find_by_ids(&state.store, chunk).await {
            Ok(runs) => runs,
            Err(error) => {
                outcome.failure = Some(error.into());
                break;
            }
        };
        let moves = runs.into_iter().map(|run| async move {
            let command = ApplyOperatorAction {
                run: run.id,
                irn: run.irn,
                to: action,
                by: by.clone(),
            };
            let result = state.taxpayers.send(run.taxpayer_id, command).await;
            (run.id, result.map(drop).map_err(ApiError::from))
        });
        let mut moves = stream::iter(moves).buffered(CONCURRENT_MOVES_MAX);
        while let Some((id, result)) = moves.next().await {
            outcome.add_result(vec![id.to_string()], result);
        }
        if outcome.failure.is_some() {
            break;
        }
    }
    outcome
}

impl From<BulkRefusal> for RunRefusal {
    fn from(refusal: BulkRefusal) -> Self {
        Self {
            id: refusal.id,
            message: refusal.message,
        }
    }
}
