//! The webhook endpoints of a taxpayer: the default endpoint, which Update Webhook sets and whose id is `default`, and
//! up to ten others, each with its own events, secret, schedule and health.

use actix_web::http::{Method, StatusCode};
use actix_web::web;
use address_policy::AddressPolicy;
use secrecy::ExposeSecret;

use crate::actors::taxpayer::commands::{AddEndpoint, ChangeEndpoint, RemoveEndpoint};
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::endpoint::{Endpoint, SecretType};
use crate::domain::kernel::audit::Actor;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids::{find_endpoint, find_taxpayer};
use crate::http::forms::reader::Reader;
use crate::http::forms::{reader, webhook_endpoint};
use crate::http::idempotency::IdempotentRequest;
use crate::http::key_generation;
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::webhook_endpoint::{AddedEndpoint, DeletedEndpoint, EndpointView};
use crate::store::webhooks;

/// The ids in the path of an endpoint: the id of the taxpayer, then the id of the endpoint.
pub(super) type EndpointIds = web::Path<(String, String)>;

pub(super) const NOT_FOUND_ERROR_CODES: [ErrorCode; 2] =
    [ErrorCode::EndpointNotFound, ErrorCode::TaxpayerNotFound];

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/v1/system-integrators/taxpayers/{id}/webhook/endpoints")
            .get(list_endpoints, || {
                doc(
                    "list_webhook_endpoints",
                    "Every endpoint with its health, the default one first",
                )
                .with_note(
                    "A taxpayer can have up to 10 endpoints beside the \
                     default one.",
                )
                .with_list_response::<EndpointView<'_>>("Webhook endpoints retrieved successfully")
                .with_errors(&[ErrorCode::TaxpayerNotFound])
            })
            .post(add_endpoint, || {
                let policy = AddressPolicy::default();
                doc(
                    "add_webhook_endpoint",
                    "Another endpoint, beside the one that Update Webhook \
                     sets",
                )
                .with_note(
                    "It gets the events of its own `enabled_events` as plain \
                     JSON, in order for each IRN, whatever the other \
                     endpoints do. A taxpayer has at most 10 of them. The \
                     signing secret is shown only here.",
                )
                .with_body(
                    |reader| webhook_endpoint::read_new(reader, &policy),
                    example!("add_webhook_endpoint"),
                )
                .with_response::<AddedEndpoint<'_>>(201, "Webhook endpoint created successfully")
                .with_idempotency_key()
                .with_errors(&[ErrorCode::TaxpayerNotFound])
            }),
        endpoint_path(),
    ]
}

fn endpoint_path() -> Path {
    path("/v1/system-integrators/taxpayers/{id}/webhook/endpoints/{endpoint_id}")
        .get(get_endpoint, || {
            doc(
                "get_webhook_endpoint",
                "One endpoint; `default` is the one that Update Webhook sets",
            )
            .with_note(
                "The endpoint with its events, its retry schedule and \
                 its health.",
            )
            .with_response::<EndpointView<'_>>(200, "Webhook endpoint retrieved successfully")
            .with_errors(&NOT_FOUND_ERROR_CODES)
        })
        .patch(change_endpoint, || {
            let policy = AddressPolicy::default();
            doc(
                "change_webhook_endpoint",
                "Change what is named and keep the rest",
            )
            .with_note(
                "A new `url` also enables the endpoint. Null removes \
                 `description` and `retry_schedule_s`.",
            )
            .with_body(
                |reader| webhook_endpoint::read_change(reader, &policy),
                example!("change_webhook_endpoint"),
            )
            .with_response::<EndpointView<'_>>(200, "Webhook endpoint updated successfully")
            .with_idempotency_key()
            .with_errors(&NOT_FOUND_ERROR_CODES)
        })
        .on_methods([Method::DELETE], remove_endpoint, || {
            doc("remove_webhook_endpoint", "Delete an endpoint")
                .with_note(
                    "Its undelivered deliveries end with it: they are not \
                     sent, and a request that is under way may still arrive. \
                     `default` stays (409): set its `enabled_events` to `[]` \
                     instead.",
                )
                .with_response::<DeletedEndpoint>(200, DELETED_MESSAGE)
                .with_idempotency_key()
                .with_errors(&NOT_FOUND_ERROR_CODES)
                .with_errors(&[ErrorCode::InvalidTransition])
        })
}

const DELETED_MESSAGE: &str =
    "Webhook endpoint deleted successfully; its undelivered deliveries ended";

/// GET …/webhook/endpoints: lists all endpoints of the taxpayer.
async fn list_endpoints(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = find_taxpayer(&state, integrator, &id).await?;
    let endpoints = webhooks::owned_by_with_streaks(state.store.reader(), taxpayer.id).await?;
    let views: Vec<_> = endpoints
        .iter()
        .map(|(endpoint, streak)| EndpointView::new(endpoint, streak.as_ref()))
        .collect();
    Ok(ApiResponse::ok(
        "Webhook endpoints retrieved successfully",
        views,
    ))
}

/// POST …/webhook/endpoints: adds an endpoint. Only this response shows its signing secret.
async fn add_endpoint(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = find_taxpayer(&state, integrator, &id).await?;
    let read = |reader: &mut Reader<'_>| webhook_endpoint::read_new(reader, &state.webhook_urls);
    let form = reader::read(&*body.object().await?, &state.catalog.get(), read)?;
    let webhook_endpoint::NewEndpoint {
        url,
        enabled_events,
        description,
        retry_schedule,
    } = form.value;
    let secret = key_generation::generate_webhook_secret(SecretType::Hmac);
    let command = AddEndpoint {
        url,
        enabled_events,
        description,
        retry_schedule,
        secret: secret.clone(),
        by: Actor::Integrator(integrator),
    };
    let endpoint = idempotent
        .send(&state.taxpayers, taxpayer.id, command)
        .await?;
    let secret_text = secret.text();
    let data = AddedEndpoint {
        endpoint: EndpointView::new(&endpoint, None),
        secret: secret_text.expose_secret(),
    };
    let message = "Webhook endpoint created successfully";
    Ok(ApiResponse::with_status(StatusCode::CREATED, message, data)
        .warn(&form.warnings)
        .forbid_storing())
}

/// GET `…/webhook/endpoints/{endpoint_id}`: returns one endpoint.
async fn get_endpoint(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    ids: EndpointIds,
) -> Result<ApiResponse, ApiError> {
    let (endpoint, streak) = find_endpoint(&state, integrator, &ids).await?;
    let view = EndpointView::new(&endpoint, streak.as_ref());
    Ok(ApiResponse::ok(
        "Webhook endpoint retrieved successfully",
        view,
    ))
}

/// PATCH `…/webhook/endpoints/{endpoint_id}`: changes the settings that the body names.
async fn change_endpoint(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    ids: EndpointIds,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let (
        Endpoint {
            key, taxpayer_id, ..
        },
        streak,
    ) = find_endpoint(&state, integrator, &ids).await?;
    // Only the default endpoint may be in the private networks of the taxpayer's ERP.
    let policy = if key.is_default() {
        state.webhook_address_policy(taxpayer_id).await?
    } else {
        state.webhook_urls.clone()
    };
    let read = |reader: &mut Reader<'_>| webhook_endpoint::read_change(reader, &policy);
    let form = reader::read(&*body.object().await?, &state.catalog.get(), read)?;
    let webhook_endpoint::EndpointChange {
        url,
        enabled_events,
        description,
        retry_schedule,
    } = form.value;
    let change = ChangeEndpoint {
        endpoint: key,
        url,
        enabled_events,
        description,
        retry_schedule,
        by: Actor::Integrator(integrator),
    };
    idempotent
        .answer_once(&state.taxpayers, taxpayer_id, change, move |endpoint| {
            let view = EndpointView::after_change(endpoint, streak.as_ref());
            ApiResponse::ok("Webhook endpoint updated successfully", view).warn(&form.warnings)
        })
        .await
}

/// DELETE `…/webhook/endpoints/{endpoint_id}`: deletes an endpoint. Its undelivered deliveries end, too.
async fn remove_endpoint(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    ids: EndpointIds,
    idempotent: IdempotentRequest,
) -> Result<ApiResponse, ApiError> {
    let (endpoint, _) = find_endpoint(&state, integrator, &ids).await?;
    let command = RemoveEndpoint {
        endpoint: endpoint.key,
        by: Actor::Integrator(integrator),
    };
    let id = endpoint.key.name();
    idempotent
        .answer_once(&state.taxpayers, endpoint.taxpayer_id, command, move |()| {
            let id = id.clone();
            ApiResponse::ok(DELETED_MESSAGE, DeletedEndpoint { id, deleted: true })
        })
        .await
}
