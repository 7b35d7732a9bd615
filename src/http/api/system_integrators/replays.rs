//! Replays, which deliver a part of the event log to a webhook again: start one, list them, show one, cancel one.

use actix_web::web;

use crate::actors::taxpayer::commands::{CancelReplay, StartReplay};
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::replay::{Replay, ReplayRange, ReplayScope, ReplayState};
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::{reader, replay};
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::replay::ReplayView;
use crate::store::webhooks::replays;
use crate::store::{events, webhooks};

/// Notes in the API document about replays, for the default endpoint and for every other endpoint.
pub(super) const REPLAY_NOTE: &str = "A replay delivers past events again.";
pub(super) const PROGRESS_NOTE: &str = "Progress is counted in events of the log of the taxpayer.";

pub(crate) fn paths() -> Vec<Path> {
    let list_path = "/v1/system-integrators/taxpayers/{id}/webhook/replays";
    let replay_path = "/v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}";
    let cancel_path = "/v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}/cancel";
    vec![
        path("/v1/system-integrators/taxpayers/{id}/webhook/replay")
            .post(replay_webhook, || {
                doc(
                    "replay_webhook",
                    "Deliver again what failed, what is missing, or all",
                )
                .with_note(REPLAY_NOTE)
                .with_body(replay::read, example!("replay_webhooks"))
                .with_response::<ReplayView>(200, "Webhook replay started successfully")
                .with_idempotency_key()
                .with_errors(&[
                    ErrorCode::WebhookNotConfigured,
                    ErrorCode::InvalidTransition,
                ])
                .with_errors(&[ErrorCode::TaxpayerNotFound])
            })
            .get(get_replay, || {
                doc(
                    "get_replay",
                    "How far the latest replay is; null before the first",
                )
                .with_note(PROGRESS_NOTE)
                .with_nullable_response::<ReplayView>(200, "Webhook replay retrieved successfully")
                .with_errors(&[ErrorCode::WebhookNotConfigured, ErrorCode::TaxpayerNotFound])
            }),
        path(list_path).get(list_replays, || {
            doc(
                "list_replays",
                "Every replay with its progress, newest first",
            )
            .with_note(
                "The replays of all endpoints of the taxpayer. A replay that has ended stays in \
                 the list until its endpoint is deleted.",
            )
            .with_paging("15 by default, 100 at most")
            .with_page_response::<ReplayView>("Webhook replays retrieved successfully")
            .with_errors(&[ErrorCode::TaxpayerNotFound])
        }),
        path(replay_path).get(get_replay_by_id, || {
            doc("find_replay", "How far a replay is")
                .with_note(PROGRESS_NOTE)
                .with_response::<ReplayView>(200, "Webhook replay retrieved successfully")
                .with_errors(&[ErrorCode::ReplayNotFound, ErrorCode::TaxpayerNotFound])
        }),
        path(cancel_path).post(cancel_replay, || {
            doc(
                "cancel_replay",
                "End a replay: what it has queued is delivered, nothing more is",
            )
            .with_note("A replay that has come to its end cannot be cancelled.")
            .with_response::<ReplayView>(200, "Webhook replay cancelled successfully")
            .with_idempotency_key()
            .with_errors(&[ErrorCode::ReplayNotFound, ErrorCode::InvalidTransition])
            .with_errors(&[ErrorCode::TaxpayerNotFound])
        }),
    ]
}

/// POST /v1/system-integrators/taxpayers/{id}/webhook/replay: starts to deliver a part of the event log again.
async fn replay_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    let target = ReplayTarget {
        taxpayer: taxpayer.id,
        endpoint: taxpayer.id.into(),
    };
    start_replay(&state, idempotent, target, body).await
}

/// The endpoint to which events are delivered again, and its taxpayer.
pub(super) struct ReplayTarget {
    pub(super) taxpayer: TaxpayerId,
    pub(super) endpoint: EndpointKey,
}

pub(super) async fn start_replay(
    state: &ApiState,
    idempotent: IdempotentRequest,
    ReplayTarget { taxpayer, endpoint }: ReplayTarget,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(&*body.object().await?, &state.catalog.get(), replay::read)?;
    let first_sequence =
        events::sequence_at_position(&state.store, taxpayer, form.value.since).await?;
    let command = StartReplay {
        endpoint,
        range: ReplayRange::from_sequence(form.value.scope, first_sequence),
        by: None,
    };
    let stored_endpoint = webhooks::find_by_key(state.store.reader(), endpoint).await?;
    let has_no_events = stored_endpoint.is_some_and(|endpoint| endpoint.enabled_kinds().is_empty());
    let warnings = form.warnings;
    let respond = move |replay: &Replay| {
        let empty_warning = empty_replay_warning(replay, has_no_events).map(str::to_owned);
        let warnings: Vec<_> = warnings.iter().cloned().chain(empty_warning).collect();
        ApiResponse::ok(
            "Webhook replay started successfully",
            ReplayView::from(replay),
        )
        .warn(&warnings)
    };
    idempotent
        .answer_once(&state.taxpayers, taxpayer, command, respond)
        .await
}

/// Returns a warning if the new replay will certainly deliver nothing. `has_no_events` is true if the endpoint has
/// enabled no event.
fn empty_replay_warning(replay: &Replay, has_no_events: bool) -> Option<&'static str> {
    if replay.is_empty() {
        return Some("nothing is replayed: the log has no event from there on");
    }
    let misses_nothing = has_no_events && replay.scope == ReplayScope::Missing;
    misses_nothing.then_some("nothing is missing: no event is among enabled_events")
}

/// GET /v1/system-integrators/taxpayers/{id}/webhook/replay: returns the progress of the latest replay, or null.
async fn get_replay(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    latest_replay_response(&state, taxpayer.id.into()).await
}

pub(super) async fn latest_replay_response(
    state: &ApiState,
    endpoint: EndpointKey,
) -> Result<ApiResponse, ApiError> {
    let latest = replays::latest_for_endpoint(state.store.reader(), endpoint).await?;
    let endpoint = webhooks::find_by_key(state.store.reader(), endpoint).await?;
    let view = latest
        .as_ref()
        .map(|replay| ReplayView::for_endpoint(endpoint.as_ref(), replay));
    Ok(ApiResponse::ok(
        "Webhook replay retrieved successfully",
        view,
    ))
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /v1/system-integrators/taxpayers/{id}/webhook/replays: lists the replays of all endpoints, newest first.
async fn list_replays(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    let page = query.page(PER_PAGE_DEFAULT);
    let endpoints = webhooks::owned_by_with_streaks(state.store.reader(), taxpayer.id).await?;
    let (replays, total) = replays::page_owned_by(&state.store, taxpayer.id, page).await?;
    let items = replays
        .iter()
        .map(|replay| {
            let mut endpoints = endpoints.iter().map(|(endpoint, _)| endpoint);
            let endpoint = endpoints.find(|endpoint| endpoint.key == replay.endpoint);
            ReplayView::for_endpoint(endpoint, replay)
        })
        .collect();
    Ok(ApiResponse::ok(
        "Webhook replays retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

/// GET /v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}: returns the progress of one replay.
async fn get_replay_by_id(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    path: web::Path<(String, String)>,
) -> Result<ApiResponse, ApiError> {
    let (taxpayer, replay) = path.into_inner();
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &taxpayer).await?;
    let replay = find_owned_replay(&state, taxpayer.id, &replay).await?;
    let endpoint = webhooks::find_by_key(state.store.reader(), replay.endpoint).await?;
    let view = ReplayView::for_endpoint(endpoint.as_ref(), &replay);
    Ok(ApiResponse::ok(
        "Webhook replay retrieved successfully",
        view,
    ))
}

/// Returns the replay with the id `id_text`, if it belongs to this taxpayer.
async fn find_owned_replay(
    state: &ApiState,
    taxpayer: TaxpayerId,
    id_text: &str,
) -> Result<Replay, ApiError> {
    let id = path_ids::parse_uuid(id_text).ok_or(Refusal::ReplayNotFound)?;
    let replay = replays::find_owned_by_id(&state.store, taxpayer, id).await?;
    Ok(replay.ok_or(Refusal::ReplayNotFound)?)
}

/// POST /v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}/cancel: stops a replay. The call may be
/// repeated. A replay that has ended cannot be cancelled.
async fn cancel_replay(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    path: web::Path<(String, String)>,
) -> Result<ApiResponse, ApiError> {
    let (taxpayer, replay) = path.into_inner();
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &taxpayer).await?;
    let before = find_owned_replay(&state, taxpayer.id, &replay).await?;
    if before.state != ReplayState::Cancelled {
        state
            .taxpayers
            .send(taxpayer.id, CancelReplay(before.id))
            .await?;
    }
    // The replay may have ended at the same moment, so it is read again for the response.
    let after = find_owned_replay(&state, taxpayer.id, &replay).await?;
    Ok(ApiResponse::ok(
        "Webhook replay cancelled successfully",
        ReplayView::from(&after),
    ))
}
