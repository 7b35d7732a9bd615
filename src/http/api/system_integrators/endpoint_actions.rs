//! The actions on one webhook endpoint: test it, rotate its secret, enable it, replay events, and list its deliveries.
//! Each action works like the call for the default endpoint, which is in `webhook`, `replays` or `deliveries`.

use actix_web::{HttpRequest, web};

use crate::actors::taxpayer::commands::{self, EnableEndpoint};
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::kernel::audit::Actor;
use crate::http::api::system_integrators::deliveries::{
    deliveries_response, describe_delivery_list,
};
use crate::http::api::system_integrators::endpoints::{EndpointIds, NOT_FOUND_ERROR_CODES};
use crate::http::api::system_integrators::replays::{
    PROGRESS_NOTE, REPLAY_NOTE, ReplayTarget, latest_replay_response, start_replay,
};
use crate::http::api::system_integrators::webhook::{
    ENABLE_NOTE, EndpointRequest, SECRET_NOTE, count_test, describe_webhook_test, rotate_secret,
    test_endpoint,
};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids::find_endpoint;
use crate::http::forms::query::Query;
use crate::http::forms::{reader, replay, webhook};
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::ReplayView;
use crate::http::views::secret::RotatedSecret;
use crate::http::views::webhook_endpoint::EnabledEndpoint;

pub(crate) fn paths() -> Vec<Path> {
    let test_path = "/v1/system-integrators/taxpayers/{id}/webhook/endpoints/{endpoint_id}/test";
    let secret_path =
        "/v1/system-integrators/taxpayers/{id}/webhook/endpoints/{endpoint_id}/secret";
    let enable_path =
        "/v1/system-integrators/taxpayers/{id}/webhook/endpoints/{endpoint_id}/enable";
    let deliveries_path =
        "/v1/system-integrators/taxpayers/{id}/webhook/endpoints/{endpoint_id}/deliveries";
    vec![
        path(test_path)
            .always_writes()
            .waits_for_other_systems()
            .post(test_one_endpoint, || {
                let doc = doc(
                    "test_webhook_endpoint",
                    "Test an endpoint: data is whatever it answered",
                );
                describe_webhook_test(doc).with_errors(&[ErrorCode::EndpointNotFound])
            }),
        path(secret_path).post(rotate_endpoint_secret, || {
            doc(
                "rotate_webhook_endpoint_secret",
                "A new signing secret, or the public key of a new key pair",
            )
            .with_note(SECRET_NOTE)
            .with_optional_body(webhook::read_secret_type, example!("rotate_webhook_secret"))
            .with_response::<RotatedSecret<'_>>(200, "Webhook secret rotated successfully")
            .with_idempotency_key()
            .with_errors(&NOT_FOUND_ERROR_CODES)
        }),
        path(enable_path).post(enable_endpoint, || {
            doc(
                "enable_webhook_endpoint",
                "Put an endpoint back into service",
            )
            .with_note(ENABLE_NOTE)
            .with_optional_body(replay::read_enable_request, example!("enable_webhook"))
            .with_response::<EnabledEndpoint<'_>>(200, "Webhook enabled successfully")
            .with_idempotency_key()
            .with_errors(&NOT_FOUND_ERROR_CODES)
            .with_errors(&[ErrorCode::InvalidTransition])
        }),
        replay_path(),
        path(deliveries_path).get(list_deliveries, || {
            let doc = doc(
                "list_webhook_endpoint_deliveries",
                "The log of its deliveries, newest first",
            );
            describe_delivery_list(doc).with_errors(&[ErrorCode::EndpointNotFound])
        }),
    ]
}

fn replay_path() -> Path {
    path("/v1/system-integrators/taxpayers/{id}/webhook/endpoints/{endpoint_id}/replay")
        .post(replay_to_endpoint, || {
            doc(
                "replay_webhook_endpoint",
                "Deliver again what failed, what is missing, or all",
            )
            .with_note(REPLAY_NOTE)
            .with_body(replay::read, example!("replay_webhooks"))
            .with_response::<ReplayView>(200, "Webhook replay started successfully")
            .with_idempotency_key()
            .with_errors(&NOT_FOUND_ERROR_CODES)
            .with_errors(&[ErrorCode::InvalidTransition])
        })
        .get(get_latest_replay, || {
            doc(
                "get_webhook_endpoint_replay",
                "How far the latest replay is; null before the first",
            )
            .with_note(PROGRESS_NOTE)
            .with_nullable_response::<ReplayView>(200, "Webhook replay retrieved successfully")
            .with_errors(&NOT_FOUND_ERROR_CODES)
        })
}

/// POST `…/{endpoint_id}/test`: sends a test delivery and returns the endpoint's answer. With `grade=true`, sends
/// several test deliveries and returns a grade of the answers.
async fn test_one_endpoint(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    ids: EndpointIds,
    query: Query,
    request: HttpRequest,
) -> Result<ApiResponse, ApiError> {
    let (endpoint, _) = find_endpoint(&state, integrator, &ids).await?;
    count_test(&state, &request, endpoint.taxpayer_id)?;
    test_endpoint(&state, endpoint.key, &query).await
}

/// POST `…/{endpoint_id}/secret`: creates a new signing secret, which only this response shows, or a key pair, whose
/// public key it shows.
async fn rotate_endpoint_secret(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    ids: EndpointIds,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let (endpoint, _) = find_endpoint(&state, integrator, &ids).await?;
    let endpoint_request = EndpointRequest {
        taxpayer: endpoint.taxpayer_id,
        endpoint: endpoint.key,
        by: Actor::Integrator(integrator),
    };
    rotate_secret(&state, endpoint_request, idempotent, body).await
}

/// POST `…/{endpoint_id}/enable`: enables the endpoint and may replay missed events.
async fn enable_endpoint(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    ids: EndpointIds,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let (endpoint, _) = find_endpoint(&state, integrator, &ids).await?;
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        replay::read_enable_request,
    )?;
    let command = EnableEndpoint {
        endpoint: endpoint.key,
        replay: form.value.scope(),
        reason: None,
    };
    let warnings = form.warnings;
    let respond = move |enabled: &commands::EnabledEndpoint| {
        let view = EnabledEndpoint::new(&enabled.endpoint, enabled.replay.as_ref());
        ApiResponse::ok("Webhook enabled successfully", view).warn(&warnings)
    };
    idempotent
        .answer_once(&state.taxpayers, endpoint.taxpayer_id, command, respond)
        .await
}

/// POST `…/{endpoint_id}/replay`: starts to deliver a part of the event log to this endpoint again.
async fn replay_to_endpoint(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    ids: EndpointIds,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let (endpoint, _) = find_endpoint(&state, integrator, &ids).await?;
    let target = ReplayTarget {
        taxpayer: endpoint.taxpayer_id,
        endpoint: endpoint.key,
    };
    start_replay(&state, idempotent, target, body).await
}

/// GET `…/{endpoint_id}/replay`: returns the progress of the endpoint's latest replay, or null.
async fn get_latest_replay(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    ids: EndpointIds,
) -> Result<ApiResponse, ApiError> {
    let (endpoint, _) = find_endpoint(&state, integrator, &ids).await?;
    latest_replay_response(&state, endpoint.key).await
}

/// GET `…/{endpoint_id}/deliveries`: lists the deliveries to this endpoint, newest event first.
async fn list_deliveries(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    ids: EndpointIds,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let (endpoint, _) = find_endpoint(&state, integrator, &ids).await?;
    deliveries_response(&state, endpoint.taxpayer_id, endpoint.key, &query).await
}
