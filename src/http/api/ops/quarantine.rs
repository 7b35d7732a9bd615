//! The quarantine: commands and steps that panicked twice, and work that was in flight at three crashes. The paths here
//! list all quarantined work, replay commands, and drop commands and deliveries. Quarantined runs and deliveries are
//! retried with the paths for runs and dead letters.

use actix_web::web;
use timing::CommandId;

use crate::domain::access::caller::{OpsOperator, OpsViewer};
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::quarantine::{QuarantineState, QuarantinedCommand, QuarantinedWork, WorkKind};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::{reader, reason};
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::quarantined_work::QuarantinedWorkView;
use crate::store::operations::quarantine_list::{self, QuarantineFilter};
use crate::store::webhooks::crashed_deliveries;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/quarantine").get(list_quarantine, || {
            doc(
                "list_quarantine",
                "Work that was put aside, because it panicked or crashed processes, newest first",
            )
            .with_note(
                "`replay` and `drop` are the paths to post to, where there is something to do.",
            )
            .query_word("kind", WorkKind::allowed_words, "of a kind of work")
            .query_word("state", QuarantineState::allowed_words, "of a state")
            .query("taxpayer_id", "of one taxpayer")
            .query(
                "name",
                "a command, an operation or an event, such as create",
            )
            .with_paging("100 at most")
            .with_page_response::<QuarantinedWorkView<'_>>("Quarantine retrieved successfully")
            .with_errors(&[ErrorCode::ValidationFailed])
        }),
        path("/ops/quarantine/{reference}/replay").post(replay_command, || {
            doc(
                "replay_command",
                "Execute a quarantined command again, once",
            )
            .with_note("Only a create can be replayed. `result` says how the replay ended.")
            .with_optional_body(reason::read, example!("reason"))
            .with_response::<QuarantinedWorkView<'_>>(200, "Command replayed successfully")
            .with_errors(&[ErrorCode::CommandNotFound, ErrorCode::InvalidTransition])
        }),
        path("/ops/quarantine/{reference}/drop").post(drop_work, || {
            doc("drop_quarantined", "Drop a quarantined command or delivery")
                .with_note("A command is not executed. A delivery stays a dead letter.")
                .with_optional_body(reason::read, example!("reason"))
                .with_response::<QuarantinedWorkView<'_>>(200, "Work dropped successfully")
                .with_errors(&[ErrorCode::CommandNotFound, ErrorCode::InvalidTransition])
        }),
    ]
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /ops/quarantine: lists everything in quarantine, without the contents of commands.
async fn list_quarantine(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let (quarantined, total) =
        quarantine_list::page(&state.store, &read_filter(&query)?, page).await?;
    let items = quarantined.iter().map(QuarantinedWorkView::from).collect();
    Ok(ApiResponse::ok(
        "Quarantine retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

/// The names of the query parameters that filter the list.
pub(crate) const FILTER_NAMES: [&str; 4] = ["kind", "state", "taxpayer_id", "name"];

/// Reads the filter of the list of quarantined work from the query string. An unknown kind or state is a fault.
pub(crate) fn read_filter(query: &Query) -> Result<QuarantineFilter, ApiError> {
    Ok(QuarantineFilter {
        kind: query.word("kind", WorkKind::parse, WorkKind::allowed_words)?,
        state: query.word(
            "state",
            QuarantineState::parse,
            QuarantineState::allowed_words,
        )?,
        taxpayer_id: query.taxpayer_id("taxpayer_id"),
        name: query.trimmed_text("name"),
        references: None,
    })
}

/// POST /ops/quarantine/{reference}/replay: an operator has a command executed again.
async fn replay_command(
    state: web::Data<ApiState>,
    OpsOperator(operator_id): OpsOperator,
    reference: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        reason::read,
    )?;
    let by = OperatorRequest {
        operator_id,
        reason: form.value.0,
    };
    let replayed = replay_by_reference(&state, &reference, &by).await?;
    let message = replay_result_message(replayed.state);
    let work = QuarantinedWork::from(replayed);
    Ok(ApiResponse::ok(message, QuarantinedWorkView::from(&work)).warn(&form.warnings))
}

/// Returns the message about a replay that left the command in the state `after`.
fn replay_result_message(after: QuarantineState) -> &'static str {
    match after {
        QuarantineState::Kept => "The replay changed nothing; the command stays in the quarantine",
        QuarantineState::Replayed | QuarantineState::Dropped => "Command replayed successfully",
    }
}

/// POST /ops/quarantine/{reference}/drop: an operator drops a command or a delivery.
async fn drop_work(
    state: web::Data<ApiState>,
    OpsOperator(operator_id): OpsOperator,
    reference: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        reason::read,
    )?;
    let by = OperatorRequest {
        operator_id,
        reason: form.value.0,
    };
    let dropped = drop_by_reference(&state, &reference, &by).await?;
    Ok(ApiResponse::ok(
        "Work dropped successfully",
        QuarantinedWorkView::from(&dropped),
    )
    .warn(&form.warnings))
}

/// Executes the command with this reference again, at most once.
pub(crate) async fn replay_by_reference(
    state: &ApiState,
    reference: &str,
    by: &OperatorRequest,
) -> Result<QuarantinedCommand, ApiError> {
    Ok(state
        .taxpayers
        .replay_quarantined(parse_command_id(reference)?, by, state.now())
        .await?)
}

/// Drops the command or the delivery with this reference.
pub(crate) async fn drop_by_reference(
    state: &ApiState,
    reference: &str,
    by: &OperatorRequest,
) -> Result<QuarantinedWork, ApiError> {
    let id = parse_command_id(reference)?;
    let now = state.now();
    if let Some((delivery, kind)) =
        crashed_deliveries::release_to_dead_letters(&state.store, id, by, now).await?
    {
        let work = QuarantinedWork::from_delivery(delivery, kind, now);
        let guidance = "It was dropped. It stays a dead letter.".to_owned();
        let state = QuarantineState::Dropped;
        return Ok(QuarantinedWork {
            state,
            may_replay: false,
            may_drop: false,
            guidance,
            ..work
        });
    }
    Ok(state.taxpayers.drop_quarantined(id, by, now).await?.into())
}

fn parse_command_id(reference: &str) -> Result<CommandId, Refusal> {
    path_ids::parse_uuid(reference).ok_or(Refusal::CommandNotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_after_which_the_command_stays_is_no_success() {
        for (after, is_success) in [
            (QuarantineState::Kept, false),
            (QuarantineState::Replayed, true),
        ] {
            let message = replay_result_message(after);
            assert_eq!(message.contains("successfully"), is_success, "{message}");
        }
    }
}
