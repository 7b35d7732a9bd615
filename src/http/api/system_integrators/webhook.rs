//! A taxpayer's webhook: read and change the settings, create a signing secret, test the endpoint, enable the webhook.

use actix_web::http::Method;
use actix_web::{HttpRequest, web};
use address_policy::AddressPolicy;
use secrecy::ExposeSecret;

use crate::actors::delivery::GradingOutcome;
use crate::actors::taxpayer::commands::{self, EnableEndpoint, RotateSecret, SetWebhook};
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::reader::Reader;
use crate::http::forms::{reader, replay, webhook};
use crate::http::idempotency::IdempotentRequest;
use crate::http::key_generation;
use crate::http::limits::{self, SensitiveOperation};
use crate::http::openapi::{OperationDoc, doc, example, schema};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::endpoint_answer::EndpointAnswer;
use crate::http::views::grade::GradeView;
use crate::http::views::integration::Integration;
use crate::http::views::replay::EnabledWebhook;
use crate::http::views::secret::RotatedSecret;
use crate::store::webhooks;
use crate::store::webhooks::integrations;

/// Notes in the API document about actions on an endpoint, for the default endpoint and for every other endpoint.
pub(super) const SECRET_NOTE: &str = "For a day, messages are also signed with the secret before, so that receivers can \
    change without a gap.";
pub(super) const ENABLE_NOTE: &str =
    "Deliveries begin again; on demand also those of what was missed meanwhile.";

pub(crate) fn paths() -> Vec<Path> {
    let test_path = "/v1/system-integrators/taxpayers/{id}/webhook/test";
    let update_methods = [Method::PUT, Method::PATCH, Method::POST];
    vec![
        path("/v1/system-integrators/taxpayers/{id}/webhook")
            .get(get_webhook, || {
                doc("get_webhook", "The integration record")
                    .with_note(
                        "Where the notifications of the taxpayer go, and \
                         whether they arrive.",
                    )
                    .with_response::<Integration<'_>>(200, "Webhook retrieved successfully")
                    .with_errors(&[ErrorCode::WebhookNotConfigured, ErrorCode::TaxpayerNotFound])
            })
            .on_methods(update_methods, update_webhook, || {
                let policy = AddressPolicy::default();
                doc("update_webhook", "Update Webhook")
                    .with_note(
                        "Sets the address and the events of the webhook. A \
                         signing secret comes from `webhook/secret`.",
                    )
                    .with_body(
                        |reader| webhook::read(reader, &policy),
                        example!("update_webhook"),
                    )
                    .with_response::<Integration<'_>>(200, "Webhook updated successfully")
                    .with_idempotency_key()
                    .with_errors(&[ErrorCode::TaxpayerNotFound])
            }),
        path(test_path)
            .always_writes()
            .waits_for_other_systems()
            .on_methods([Method::POST, Method::GET], test_webhook, webhook_test_doc),
        path("/v1/system-integrators/taxpayers/{id}/webhook/secret").post(
            rotate_webhook_secret,
            || {
                doc(
                    "rotate_webhook_secret",
                    "A new signing secret, or the public key of a new key pair",
                )
                .with_note(SECRET_NOTE)
                .with_optional_body(webhook::read_secret_type, example!("rotate_webhook_secret"))
                .with_response::<RotatedSecret<'_>>(200, "Webhook secret rotated successfully")
                .with_idempotency_key()
                .with_errors(&[ErrorCode::WebhookNotConfigured, ErrorCode::TaxpayerNotFound])
            },
        ),
        path("/v1/system-integrators/taxpayers/{id}/webhook/enable").post(enable_webhook, || {
            doc("enable_webhook", "Put the webhook back into service")
                .with_note(ENABLE_NOTE)
                .with_optional_body(replay::read_enable_request, example!("enable_webhook"))
                .with_response::<EnabledWebhook<'_>>(200, "Webhook enabled successfully")
                .with_idempotency_key()
                .with_errors(&[
                    ErrorCode::WebhookNotConfigured,
                    ErrorCode::InvalidTransition,
                ])
                .with_errors(&[ErrorCode::TaxpayerNotFound])
        }),
    ]
}

fn webhook_test_doc() -> OperationDoc {
    let summary = "Test Webhook: data is whatever the endpoint answered";
    describe_webhook_test(
        doc("test_webhook", summary).with_errors(&[ErrorCode::WebhookNotConfigured]),
    )
}

pub(super) fn describe_webhook_test(doc: OperationDoc) -> OperationDoc {
    doc.with_note(
        "With `grade=true` a battery of messages is sent instead, \
         right ones and wrong ones, one after the other and \
         within a minute. Data is then a grade from A to F, a \
         score of 100, and a check for each message: name, \
         passed, sent, expected, status, duration_ms, \
         explanation.",
    )
    .query("grade", "true for a grade of the endpoint")
    .with_schema_response(
        200,
        "Connection test successful! Response code: <status>",
        schema::envelope(schema::any()),
    )
    .with_schema_response(
        200,
        "Webhook graded <grade>: <score> of 100 points",
        schema::envelope(schema::any()),
    )
    .with_errors(&[ErrorCode::WebhookUnreachable])
    .with_errors(&[ErrorCode::ValidationFailed, ErrorCode::TaxpayerNotFound])
}

/// GET /v1/system-integrators/taxpayers/{id}/webhook: returns the integration record of the taxpayer.
async fn get_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    let endpoint =
        webhooks::find_by_key_with_streak(state.store.reader(), taxpayer.id.into()).await?;
    let (endpoint, streak) = endpoint.ok_or(Refusal::WebhookNotConfigured)?;
    let integration =
        integrations::owned_by_without_secrets(state.store.reader(), taxpayer.id).await?;
    let view = Integration::new(&endpoint, &integration).with_health(&endpoint, streak.as_ref());
    Ok(ApiResponse::ok("Webhook retrieved successfully", view))
}

/// PUT /v1/system-integrators/taxpayers/{id}/webhook (Update Webhook in spec.md; also PATCH and POST): sets the default
/// endpoint of a taxpayer.
async fn update_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    let policy = state.webhook_address_policy(taxpayer.id).await?;
    let read = |reader: &mut Reader<'_>| webhook::read(reader, &policy);
    let form = reader::read(&*body.object().await?, &state.catalog.get(), read)?;
    let webhook::Webhook {
        url,
        enabled_events,
        retry_schedule,
    } = form.value;
    let command = SetWebhook {
        url,
        enabled_events,
        retry_schedule,
        by: Actor::Integrator(integrator),
    };
    let integration =
        integrations::owned_by_without_secrets(state.store.reader(), taxpayer.id).await?;
    idempotent
        .answer_once(&state.taxpayers, taxpayer.id, command, move |endpoint| {
            let view = Integration::new(endpoint, &integration);
            ApiResponse::ok("Webhook updated successfully", view).warn(&form.warnings)
        })
        .await
}

/// POST /v1/system-integrators/taxpayers/{id}/webhook/secret: creates a new signing secret, which only this response
/// shows, or a key pair, whose public key it shows.
async fn rotate_webhook_secret(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    let endpoint_request = EndpointRequest {
        taxpayer: taxpayer.id,
        endpoint: taxpayer.id.into(),
        by: Actor::Integrator(integrator),
    };
    rotate_secret(&state, endpoint_request, idempotent, body).await
}

/// The endpoint that a request is about, its taxpayer, and the caller.
#[derive(Clone, Copy)]
pub(super) struct EndpointRequest {
    pub(super) taxpayer: TaxpayerId,
    pub(super) endpoint: EndpointKey,
    pub(super) by: Actor,
}

pub(super) async fn rotate_secret(
    state: &ApiState,
    endpoint_request: EndpointRequest,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        webhook::read_secret_type,
    )?;
    let secret = key_generation::generate_webhook_secret(form.value);
    let command = RotateSecret {
        endpoint: endpoint_request.endpoint,
        secret: secret.clone(),
        by: endpoint_request.by,
    };
    idempotent
        .send(&state.taxpayers, endpoint_request.taxpayer, command)
        .await?;
    let public_key = secret.public_key();
    let secret_text = secret.text();
    let secret_text = public_key.is_none().then(|| secret_text.expose_secret());
    let data = RotatedSecret {
        secret: secret_text,
        public_key: public_key.as_deref(),
    };
    Ok(ApiResponse::ok("Webhook secret rotated successfully", data)
        .warn(&form.warnings)
        .forbid_storing())
}

/// POST /v1/system-integrators/taxpayers/{id}/webhook/test (also GET): sends a test delivery and returns the endpoint's
/// answer. With `grade=true`, sends several test deliveries and returns a grade of the answers.
async fn test_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    query: Query,
    request: HttpRequest,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    count_test(&state, &request, taxpayer.id)?;
    test_endpoint(&state, taxpayer.id.into(), &query).await
}

/// Counts a test of an endpoint of this taxpayer towards the limit of tests.
pub(super) fn count_test(
    state: &ApiState,
    request: &HttpRequest,
    taxpayer: TaxpayerId,
) -> Result<(), ApiError> {
    let test = SensitiveOperation::WebhookTest;
    let allowance = state
        .limits
        .count_sensitive_operation(test, taxpayer, state.now());
    limits::store_allowance(request, allowance)
}

pub(super) async fn test_endpoint(
    state: &ApiState,
    endpoint: EndpointKey,
    query: &Query,
) -> Result<ApiResponse, ApiError> {
    let attempt = if query.flag("grade")? {
        match state.delivery.grade(endpoint).await? {
            GradingOutcome::Graded(graded) => {
                let message = format!(
                    "Webhook graded {}: {} of 100 points",
                    graded.grade, graded.score
                );
                return Ok(ApiResponse::ok(message, GradeView::from(&graded)));
            }
            GradingOutcome::Unanswered(attempt) => attempt,
        }
    } else {
        state.delivery.send_test_delivery(endpoint).await?
    };
    let answer = EndpointAnswer::from_attempt(&attempt)?;
    let message = format!(
        "Connection test successful! Response code: {}",
        answer.status
    );
    Ok(ApiResponse::ok(message, answer.body))
}

/// POST /v1/system-integrators/taxpayers/{id}/webhook/enable: enables the webhook and may replay missed events.
async fn enable_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        replay::read_enable_request,
    )?;
    let command = EnableEndpoint {
        endpoint: taxpayer.id.into(),
        replay: form.value.scope(),
        reason: None,
    };
    let integration =
        integrations::owned_by_without_secrets(state.store.reader(), taxpayer.id).await?;
    let warnings = form.warnings;
    let respond = move |enabled: &commands::EnabledEndpoint| {
        let view = EnabledWebhook::new(&enabled.endpoint, &integration, enabled.replay.as_ref());
        ApiResponse::ok("Webhook enabled successfully", view).warn(&warnings)
    };
    idempotent
        .answer_once(&state.taxpayers, taxpayer.id, command, respond)
        .await
}
