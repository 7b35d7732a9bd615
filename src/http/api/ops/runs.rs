//! Pipeline runs of all taxpayers: list them, show one, and pause, resume, retry or cancel one. `run_moves`
//! does this for many.

use actix_web::web;

use crate::actors::taxpayer::commands::ApplyOperatorAction;
use crate::domain::access::caller::{OpsOperator, OpsViewer};
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::pipeline::{Operation, OperatorAction, RunState, Step, WaitReason};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::{reader, reason, run_filter};
use crate::http::openapi::{OperationDoc, doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::operated_run::{OperatedRun, OperatedRunWithSteps};
use crate::http::views::paginator::Paginator;
use crate::store::runs::{run_list, step_log};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/pipeline/runs").get(list_runs, || {
            doc("list_runs", "Pipeline runs of all taxpayers")
                .query_word("state", RunState::allowed_words, "of a state")
                .query_word("operation", Operation::allowed_words, "of an operation")
                .query("taxpayer_id", "of one taxpayer")
                .query("irn", "of one IRN")
                .query_word("step", Step::allowed_words, "the step that a run is at")
                .query_word(
                    "wait_reason",
                    WaitReason::allowed_words,
                    "what a run waits for",
                )
                .query("error", "a part of the last error, in any case")
                .query_number("older_than_s", 0, "created at least this many seconds ago")
                .query(
                    "deadline",
                    "submissions that have not ended: `overdue`, or `soon` for a deadline within an hour",
                )
                .query(
                    "order",
                    "`newest` (the default), `oldest` or `deadline`, the earliest first",
                )
                .with_paging("100 at most")
                .with_page_response::<OperatedRun<'_>>("Pipeline runs retrieved successfully")
                .with_errors(&[ErrorCode::ValidationFailed, ErrorCode::IrnMalformed])
        }),
        path("/ops/pipeline/runs/{id}").get(get_run, || {
            doc("get_operated_run", "A pipeline run with its steps")
                .with_response::<OperatedRunWithSteps<'_>>(200, "Pipeline run retrieved successfully")
                .with_errors(&[ErrorCode::RunNotFound])
        }),
        path("/ops/pipeline/runs/{id}/pause")
            .post(pause_run, || run_action_doc("pause_run", "Hold a run")),
        path("/ops/pipeline/runs/{id}/resume").post(resume_run, || {
            run_action_doc("resume_run", "Let a run that was held go on")
        }),
        path("/ops/pipeline/runs/{id}/retry").post(retry_run, || {
            run_action_doc(
                "retry_run",
                "Let a run go on now, and from its start if it has ended",
            )
        }),
        path("/ops/pipeline/runs/{id}/cancel").post(cancel_run, || {
            run_action_doc("cancel_run", "End a run that has taken no effect")
        }),
    ]
}

fn run_action_doc(name: &'static str, summary: &'static str) -> OperationDoc {
    doc(name, summary)
        .with_optional_body(reason::read, example!("reason"))
        .with_response::<OperatedRunWithSteps<'_>>(
            200,
            "Pipeline run paused, resumed, queued or cancelled successfully",
        )
        .with_errors(&[ErrorCode::RunNotFound, ErrorCode::InvalidTransition])
        .with_errors(&[
            ErrorCode::InvoiceLocked,
            ErrorCode::InvoiceNotApproved,
            ErrorCode::IrnContentChanged,
        ])
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /ops/pipeline/runs: lists the pipeline runs of all taxpayers.
async fn list_runs(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let (filter, order) = run_filter::read_query(&query)?;
    let page = query.page(PER_PAGE_DEFAULT);
    let now = state.now();
    let (runs, total) = run_list::page(&state.store, &filter, order, now, page).await?;
    let items = runs.iter().map(|run| OperatedRun::new(run, now)).collect();
    Ok(ApiResponse::ok(
        "Pipeline runs retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

/// GET /ops/pipeline/runs/{id}: returns a run with its steps. The run may belong to any taxpayer.
async fn get_run(
    state: web::Data<ApiState>,
    _: OpsViewer,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let run = path_ids::find_run(&state, &id).await?;
    let steps = step_log::newest_steps(&state.store, run.taxpayer_id, run.id).await?;
    Ok(ApiResponse::ok(
        "Pipeline run retrieved successfully",
        OperatedRunWithSteps::new(&run, &steps, state.now()),
    ))
}

type ActionResult = Result<ApiResponse, ApiError>;

/// Declares the handlers of POST /ops/pipeline/runs/{id}/pause, /resume, /retry and /cancel.
macro_rules! run_action_handlers {
    ($($handler:ident = $action:expr;)+) => {$(
        async fn $handler(
            state: web::Data<ApiState>,
            OpsOperator(operator): OpsOperator,
            id: web::Path<String>,
            body: Body,
        ) -> ActionResult {
            apply_action(&state, operator, &id, body, $action).await
        }
    )+};
}

run_action_handlers! {
    pause_run = OperatorAction::Pause;
    resume_run = OperatorAction::Resume;
    retry_run = OperatorAction::Retry;
    cancel_run = OperatorAction::Cancel;
}

async fn apply_action(
    state: &ApiState,
    operator_id: i64,
    id: &str,
    body: Body,
    action: OperatorAction,
) -> ActionResult {
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        reason::read,
    )?;
    let run = path_ids::find_run(state, id).await?;
    let by = OperatorRequest {
        operator_id,
        reason: form.value.0,
    };
    let command = ApplyOperatorAction {
        run: run.id,
        irn: run.irn,
        to: action,
        by,
    };
    let run = state.taxpayers.send(run.taxpayer_id, command).await?;
    let steps = step_log::newest_steps(&state.store, run.taxpayer_id, run.id).await?;
    let message = match action {
        OperatorAction::Pause => "Pipeline run paused successfully",
        OperatorAction::Resume => "Pipeline run resumed successfully",
        OperatorAction::Retry => "Pipeline run retried successfully",
        OperatorAction::Cancel => "Pipeline run cancelled successfully",
    };
    Ok(ApiResponse::ok(
        message,
        OperatedRunWithSteps::new(&run, &steps, state.now()),
    )
    .warn(&form.warnings))
}
