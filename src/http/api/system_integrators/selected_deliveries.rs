//! Sends selected deliveries again, as one replay: the deliveries with given ids, or all deliveries that match a
//! filter. A preview only counts the selected deliveries.

use actix_web::http::StatusCode;
use actix_web::web;

use crate::actors::taxpayer::commands::StartReplay;
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::replay::Replay;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::api::system_integrators::replays::ReplayTarget;
use crate::http::delivery_selection::selected_range;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids::{find_endpoint, find_taxpayer};
use crate::http::forms::query::Query;
use crate::http::forms::{delivery_selection, reader};
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{OperationDoc, doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::{ReplayView, SelectionPreview};
use crate::store::webhooks::delivery_selection::count_by_state;

const PREVIEWED_MESSAGE: &str = "Selected deliveries counted; nothing was sent";
const STARTED_MESSAGE: &str = "Webhook replay started successfully";

pub(crate) fn paths() -> Vec<Path> {
    let default_endpoint_path = "/v1/system-integrators/taxpayers/{id}/webhook/deliveries/replay";
    let endpoint_path =
        "/v1/system-integrators/taxpayers/{id}/webhook/endpoints/{endpoint_id}/deliveries/replay";
    vec![
        path(default_endpoint_path).post(replay_selected, || {
            describe_selected_replay(doc(
                "replay_selected_deliveries",
                "Send chosen deliveries again, or all that match",
            ))
            .with_errors(&[ErrorCode::WebhookNotConfigured])
        }),
        path(endpoint_path).post(replay_selected_for_endpoint, || {
            describe_selected_replay(doc(
                "replay_selected_endpoint_deliveries",
                "Send chosen deliveries to an endpoint again, or all that match",
            ))
            .with_errors(&[ErrorCode::EndpointNotFound])
        }),
    ]
}

fn describe_selected_replay(doc: OperationDoc) -> OperationDoc {
    doc.with_note(
        "Either `delivery_ids`, or `matching` with the filters of the list; `{}` matches every delivery. The answer is 202 at \
         once, and the replay goes on by itself, also after a restart. Its progress is under `webhook/replays/{replay_id}`.",
    )
    .query(
        "preview",
        "true to change nothing and see how many deliveries would be sent again",
    )
    .with_body(delivery_selection::read, example!("replay_selected_deliveries"))
    .with_response::<SelectionPreview>(200, PREVIEWED_MESSAGE)
    .with_response::<ReplayView>(202, STARTED_MESSAGE)
    .with_idempotency_key()
    .with_errors(&[ErrorCode::TaxpayerNotFound, ErrorCode::InvalidTransition])
}

/// POST …/webhook/deliveries/replay: sends deliveries to the default endpoint again.
async fn replay_selected(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    id: web::Path<String>,
    query_and_body: (Query, Body),
) -> Result<ApiResponse, ApiError> {
    let taxpayer = find_taxpayer(&state, integrator, &id).await?;
    let target = ReplayTarget {
        taxpayer: taxpayer.id,
        endpoint: taxpayer.id.into(),
    };
    start_selected_replay(&state, target, idempotent, query_and_body).await
}

/// POST `…/webhook/endpoints/{endpoint_id}/deliveries/replay`: sends deliveries to this endpoint again.
async fn replay_selected_for_endpoint(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    ids: web::Path<(String, String)>,
    query_and_body: (Query, Body),
) -> Result<ApiResponse, ApiError> {
    let (endpoint, _) = find_endpoint(&state, integrator, &ids).await?;
    let target = ReplayTarget {
        taxpayer: endpoint.taxpayer_id,
        endpoint: endpoint.key,
    };
    start_selected_replay(&state, target, idempotent, query_and_body).await
}

async fn start_selected_replay(
    state: &ApiState,
    ReplayTarget { taxpayer, endpoint }: ReplayTarget,
    idempotent: IdempotentRequest,
    query_and_body: (Query, Body),
) -> Result<ApiResponse, ApiError> {
    let (query, body) = query_and_body;
    let is_preview = query.flag("preview")?;
    let catalog = state.catalog.get();
    let form = reader::read(&*body.object().await?, &catalog, delivery_selection::read)?;
    let range = selected_range(state, taxpayer, endpoint, form.value).await?;
    let counts = count_by_state(&state.store, taxpayer, endpoint, &range).await?;
    let no_match_warning = (counts.total() == 0).then(|| "no delivery matches".to_owned());
    let warnings: Vec<_> = form.warnings.into_iter().chain(no_match_warning).collect();
    if is_preview {
        let preview = SelectionPreview::from(counts);
        return Ok(ApiResponse::ok(PREVIEWED_MESSAGE, preview).warn(&warnings));
    }
    let command = StartReplay {
        endpoint,
        range,
        by: None,
    };
    idempotent
        .answer_once(&state.taxpayers, taxpayer, command, move |replay| {
            started_response(taxpayer, replay).warn(&warnings)
        })
        .await
}

fn started_response(taxpayer: TaxpayerId, replay: &Replay) -> ApiResponse {
    let location = format!(
        "/v1/system-integrators/taxpayers/{taxpayer}/webhook/replays/{}",
        replay.id
    );
    ApiResponse::with_status(
        StatusCode::ACCEPTED,
        STARTED_MESSAGE,
        ReplayView::from(replay),
    )
    .with_location(&location)
}
