//! Dead letters (deliveries that failed for good) of all taxpayers: list them, replay one, or replay all dead letters
//! of one taxpayer.

use actix_web::web;

use crate::actors::taxpayer::commands::StartReplay;
use crate::domain::access::caller::{OpsOperator, OpsViewer};
use crate::domain::events::delivery::Delivery;
use crate::domain::events::log_position::LogPosition;
use crate::domain::events::replay::{Replay, ReplayRange, ReplayScope};
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::dead_letters::DeadLetterReplay;
use crate::http::forms::query::Query;
use crate::http::forms::{dead_letters, reader, reason};
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::delivery::DeadLetter;
use crate::http::views::paginator::Paginator;
use crate::http::views::replay::ReplayView;
use crate::store::accounts::taxpayers;
use crate::store::events;
use crate::store::webhooks::{self, delivery_log};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/webhooks/dead-letters").get(list_dead_letters, || {
            doc("list_dead_letters", "Deliveries that were given up")
                .query("taxpayer_id", "of one taxpayer")
                .with_paging("100 at most")
                .with_page_response::<DeadLetter<'_>>("Dead letters retrieved successfully")
        }),
        path("/ops/webhooks/dead-letters/{id}/replay").post(replay_dead_letter, || {
            doc("replay_dead_letter", "Deliver one of them again")
                .with_optional_body(reason::read, example!("reason"))
                .with_response::<ReplayView>(200, "Webhook delivery queued successfully")
                .with_errors(&[ErrorCode::DeliveryNotFound, ErrorCode::WebhookNotConfigured])
                .with_errors(&[ErrorCode::InvalidTransition])
        }),
        path("/ops/webhooks/dead-letters/replay").post(replay_dead_letters, || {
            doc("replay_dead_letters", "Deliver those of a taxpayer again")
                .with_body(dead_letters::read, example!("replay_dead_letters"))
                .with_response::<ReplayView>(200, "Webhook replay started successfully")
                .with_errors(&[ErrorCode::TaxpayerNotFound, ErrorCode::WebhookNotConfigured])
                .with_errors(&[ErrorCode::InvalidTransition])
        }),
    ]
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /ops/webhooks/dead-letters: lists the dead letters of one taxpayer or of all taxpayers.
async fn list_dead_letters(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = query.taxpayer_id("taxpayer_id");
    let page = query.page(PER_PAGE_DEFAULT);
    let (deliveries, total) = delivery_log::dead_letter_page(&state.store, taxpayer, page).await?;
    let items = deliveries.iter().map(DeadLetter::from).collect();
    Ok(ApiResponse::ok(
        "Dead letters retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

/// POST /ops/webhooks/dead-letters/{id}/replay: an operator queues a dead letter for delivery again.
async fn replay_dead_letter(
    state: web::Data<ApiState>,
    OpsOperator(operator_id): OpsOperator,
    id: web::Path<String>,
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
    let replay = replay_by_id(&state, &id, by).await?;
    let answer = ApiResponse::ok(
        "Webhook delivery queued successfully",
        ReplayView::from(&replay),
    );
    Ok(answer.warn(&form.warnings))
}

/// Queues the dead letter with this id for delivery again.
pub(crate) async fn replay_by_id(
    state: &ApiState,
    id: &str,
    by: OperatorRequest,
) -> Result<Replay, ApiError> {
    let id = path_ids::parse_uuid(id).ok_or(Refusal::DeliveryNotFound)?;
    let dead_letter = delivery_log::find_dead_by_id(&state.store, id)
        .await?
        .ok_or(Refusal::DeliveryNotFound)?;
    let command = StartReplay {
        endpoint: dead_letter.endpoint,
        range: ReplayRange::for_event(dead_letter.sequence),
        by: Some((by, vec![dead_letter.id])),
    };
    Ok(state
        .taxpayers
        .send(dead_letter.taxpayer_id, command)
        .await?)
}

/// Queues these dead letters of one endpoint for delivery again, in one replay.
pub(crate) async fn replay_deliveries(
    state: &ApiState,
    dead_letters: &[Delivery],
    by: &OperatorRequest,
) -> Result<(), ApiError> {
    let first = dead_letters.first().ok_or(Refusal::DeliveryNotFound)?;
    let command = StartReplay {
        endpoint: first.endpoint,
        range: ReplayRange::for_deliveries(
            dead_letters
                .iter()
                .map(|delivery| delivery.sequence)
                .collect(),
        ),
        by: Some((
            by.clone(),
            dead_letters.iter().map(|delivery| delivery.id).collect(),
        )),
    };
    state.taxpayers.send(first.taxpayer_id, command).await?;
    Ok(())
}

/// POST /ops/webhooks/dead-letters/replay: an operator queues the dead letters of one taxpayer for delivery again.
async fn replay_dead_letters(
    state: web::Data<ApiState>,
    OpsOperator(operator_id): OpsOperator,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        dead_letters::read,
    )?;
    let DeadLetterReplay {
        taxpayer_id,
        since,
        reason,
    } = form.value;
    let taxpayer = taxpayers::find_by_id(state.store.reader(), taxpayer_id).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    let replay = replay_all(
        &state,
        taxpayer.id,
        since,
        OperatorRequest {
            operator_id,
            reason,
        },
    )
    .await?;
    let answer = ApiResponse::ok(
        "Webhook replay started successfully",
        ReplayView::from(&replay),
    );
    Ok(answer.warn(&form.warnings))
}

/// Queues dead letters of all active endpoints of a taxpayer for delivery again: all of them, or those from a log
/// position on. Returns the replay of the first of these endpoints.
pub(crate) async fn replay_all(
    state: &ApiState,
    taxpayer: TaxpayerId,
    since: Option<LogPosition>,
    by: OperatorRequest,
) -> Result<Replay, ApiError> {
    let first_sequence = match since {
        Some(since) => events::sequence_at_position(&state.store, taxpayer, since).await?,
        None => 1,
    };
    let range = ReplayRange::from_sequence(ReplayScope::Failed, first_sequence);
    let endpoints = webhooks::owned_by_with_streaks(state.store.reader(), taxpayer).await?;
    let all = endpoints.iter().map(|(endpoint, _)| endpoint);
    let active = all.clone().filter(|endpoint| endpoint.is_active);
    let mut keys: Vec<EndpointKey> = active.map(|endpoint| endpoint.key).collect();
    if keys.is_empty() {
        // Without an active endpoint, the command is still sent once: the actor refuses it, and the refusal becomes the
        // response.
        let inactive = all.map(|endpoint| endpoint.key).next();
        keys.push(inactive.unwrap_or_else(|| taxpayer.into()));
    }
    let mut first_replay = None;
    for endpoint in keys {
        let command = StartReplay {
            endpoint,
            range: range.clone(),
            by: Some((by.clone(), Vec::new())),
        };
        let replay = state.taxpayers.send(taxpayer, command).await?;
        first_replay.get_or_insert(replay);
    }
    Ok(first_replay.ok_or(Refusal::WebhookNotConfigured)?)
}
