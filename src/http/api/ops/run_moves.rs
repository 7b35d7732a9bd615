//! Moves many runs at once: pauses, resumes, retries or cancels those that match a filter. Each run is moved by its own
//! command, like a single move, so each has its own entry in the audit log.

use actix_web::web;
use futures_util::{StreamExt, stream};

use crate::actors::taxpayer::commands::ApplyOperatorAction;
use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::access::caller::OpsOperator;
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::operator_action::OperatorAction;
use crate::domain::pipeline::{Run, RunState};
use crate::http::endpoint::{Path, path};
use crate::http::extract::body::Body;
use crate::http::forms::report;
use crate::http::forms::run_filter::{self, BulkMove};
use crate::http::openapi::{doc, example};
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::moved_runs::{MovedRuns, RunRefusal};
use crate::store::runs::run_list;

/// The maximum number of runs that one call moves. A caller repeats the call until nothing matches.
const RUNS_MAX: u64 = 1_000;
/// The number of runs that are loaded at a time, because their documents may be large.
const RUNS_PER_CHUNK: usize = 50;
/// The number of runs that are moved at the same time: several can share a commit, and other requests still have room.
const CONCURRENT_MOVES_MAX: usize = 16;
/// The maximum number of refused runs that the response names.
const REFUSALS_SHOWN_MAX: usize = 20;

pub(crate) fn endpoints() -> Vec<Path> {
    vec![path("/ops/pipeline/runs/move").post(move_runs, || {
        doc("move_runs", "Pause, resume, retry or cancel all runs that match a filter")
            .with_note(
                "A call moves 1,000 runs at most, the oldest first; `matching` says how many there are. With `preview` \
                 nothing is changed.",
            )
            .takes(run_filter::read_bulk_move, example!("move_runs"))
            .gives::<MovedRuns>(200, "Pipeline runs moved successfully")
    })]
}

/// POST /ops/pipeline/runs/move: an operator moves the runs that match a filter, or counts them.
async fn move_runs(
    state: web::Data<ApiState>,
    OpsOperator(operator_id): OpsOperator,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(
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
    let now = state.now();
    let states = RunState::ALL
        .iter()
        .copied()
        .filter(|state| state.after(action).is_some());
    let states: Vec<_> = states.collect();
    let matching = run_list::count(&state.store, &filter, &states, now).await?;
    let ids = run_list::ids(&state.store, &filter, &states, now, RUNS_MAX).await?;
    let by = OperatorRequest {
        operator_id,
        reason,
    };
    let mut moved = MovedRuns {
        action,
        preview: is_preview,
        matching,
        moved: 0,
        refused: 0,
        refusals: Vec::new(),
    };
    for chunk in ids.chunks(RUNS_PER_CHUNK) {
        let runs = run_list::with_ids(&state.store, chunk).await?;
        let results = if is_preview {
            preview_moves(runs, action)
        } else {
            apply_moves(&state, runs, action, &by).await?
        };
        for (id, result) in results {
            moved.add_result(id, result);
        }
    }
    let message = if is_preview {
        "Pipeline runs counted successfully"
    } else {
        "Pipeline runs moved successfully"
    };
    Ok(ApiResponse::ok(message, moved).warn(&form.warnings))
}

impl MovedRuns {
    fn add_result(&mut self, id: RunId, result: Result<(), String>) {
        let Err(message) = result else {
            self.moved += 1;
            return;
        };
        self.refused += 1;
        if self.refusals.len() < REFUSALS_SHOWN_MAX {
            self.refusals.push(RunRefusal { id, message });
        }
    }
}

type MoveResult = (RunId, Result<(), String>);

fn preview_moves(runs: Vec<Run>, action: OperatorAction) -> Vec<MoveResult> {
    runs.into_iter()
        .map(|run| {
            (
                run.id,
                run.check_action(action)
                    .map_err(|refusal| refusal.to_string()),
            )
        })
        .collect()
}

/// Moves the runs through their taxpayers' actors. Fails if a run cannot be moved for any other reason than a refusal.
/// Runs that were moved stay moved.
async fn apply_moves(
    state: &ApiState,
    runs: Vec<Run>,
    action: OperatorAction,
    by: &OperatorRequest,
) -> Result<Vec<MoveResult>, ApiError> {
    let moves = runs.into_iter().map(|run| {
        let command = ApplyOperatorAction {
            run: run.id,
            irn: run.irn,
            to: action,
            by: by.clone(),
        };
        async move {
            match state.taxpayers.send(run.taxpayer_id, command).await {
                Ok(_) => Ok((run.id, Ok(()))),
                Err(TaxpayerError::Refused(refusal)) => Ok((run.id, Err(refusal.to_string()))),
                Err(error) => Err(ApiError::from(error)),
            }
        }
    });
    let results: Vec<_> = stream::iter(moves)
        .buffered(CONCURRENT_MOVES_MAX)
        .collect()
        .await;
    results.into_iter().collect()
}
