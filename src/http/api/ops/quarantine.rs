//! The quarantine: commands that panicked twice. An operator lists, replays and drops them.

use actix_web::web;

use crate::domain::access::caller::{OpsOperator, OpsViewer};
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::quarantine::{QuarantineState, QuarantinedCommand};
use crate::http::endpoint::{Path, path};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::{reason, report};
use crate::http::openapi::{doc, example};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::quarantined_command::QuarantinedCommandView;
use crate::store::operations::quarantine::{self, QuarantineFilter};

pub(crate) fn endpoints() -> Vec<Path> {
    vec![
        path("/ops/quarantine").get(list_quarantine, || {
            doc("list_quarantine", "Commands that panicked twice, newest first")
                .query("state", "kept, replayed or dropped")
                .query("taxpayer_id", "of one taxpayer")
                .query("command", "of one kind, such as create")
                .with_paging("100 at most")
                .gives_page::<QuarantinedCommandView<'_>>("Quarantine retrieved successfully")
                .fails(&[ErrorCode::ValidationFailed])
        }),
        path("/ops/quarantine/{reference}/replay").post(replay_command, || {
            doc("replay_command", "Execute one of them again, once")
                .with_note("Only a create can be replayed. `result` says how the replay ended.")
                .may_take(reason::read, example!("reason"))
                .gives::<QuarantinedCommandView<'_>>(200, "Command replayed successfully")
                .fails(&[ErrorCode::CommandNotFound, ErrorCode::InvalidTransition])
        }),
        path("/ops/quarantine/{reference}/drop").post(drop_command, || {
            doc("drop_command", "Drop one of them")
                .may_take(reason::read, example!("reason"))
                .gives::<QuarantinedCommandView<'_>>(200, "Command dropped successfully")
                .fails(&[ErrorCode::CommandNotFound, ErrorCode::InvalidTransition])
        }),
    ]
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /ops/quarantine: lists quarantined commands, without their contents.
async fn list_quarantine(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let (found, total) = quarantine::page(&state.store, filter(&query)?, page).await?;
    let items = found.iter().map(QuarantinedCommandView::from).collect();
    Ok(ApiResponse::ok("Quarantine retrieved successfully", Paginator::new(page, total, items)))
}

/// Reads the filter of the list.
pub(crate) fn filter(query: &Query) -> Result<QuarantineFilter, ApiError> {
    Ok(QuarantineFilter {
        state: query.word("state", QuarantineState::parse, QuarantineState::allowed)?,
        taxpayer_id: query.taxpayer_id("taxpayer_id"),
        command: query.equal("command"),
    })
}

/// POST /ops/quarantine/{reference}/replay: an operator has a command executed again.
async fn replay_command(
    state: web::Data<ApiState>,
    OpsOperator(operator_id): OpsOperator,
    reference: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object_or_nothing().await?, &state.catalog.get(), reason::read)?;
    let by = OperatorRequest { operator_id, reason: form.value.0 };
    let replayed = replay(&state, &reference, &by).await?;
    let view = QuarantinedCommandView::from(&replayed);
    Ok(ApiResponse::ok("Command replayed successfully", view).warn(&form.warnings))
}

/// POST /ops/quarantine/{reference}/drop: an operator drops a command.
async fn drop_command(
    state: web::Data<ApiState>,
    OpsOperator(operator_id): OpsOperator,
    reference: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object_or_nothing().await?, &state.catalog.get(), reason::read)?;
    let by = OperatorRequest { operator_id, reason: form.value.0 };
    let dropped = drop(&state, &reference, &by).await?;
    let view = QuarantinedCommandView::from(&dropped);
    Ok(ApiResponse::ok("Command dropped successfully", view).warn(&form.warnings))
}

/// Executes the command with this reference again, at most once.
pub(crate) async fn replay(
    state: &ApiState,
    reference: &str,
    by: &OperatorRequest,
) -> Result<QuarantinedCommand, ApiError> {
    Ok(state.taxpayers.replay_quarantined(id(reference)?, by, state.now()).await?)
}

/// Drops the command with this reference.
pub(crate) async fn drop(
    state: &ApiState,
    reference: &str,
    by: &OperatorRequest,
) -> Result<QuarantinedCommand, ApiError> {
    Ok(state.taxpayers.drop_quarantined(id(reference)?, by, state.now()).await?)
}

fn id(reference: &str) -> Result<CommandId, Refusal> {
    path_ids::uuid(reference).ok_or(Refusal::CommandNotFound)
}
