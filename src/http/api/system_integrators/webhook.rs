//! A taxpayer's webhook: settings, signing secret, test and grade, enabling.

use actix_web::web;
use secrecy::ExposeSecret;

use crate::actors::delivery::GradingOutcome;
use crate::actors::taxpayer::command::WebhookChange;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::delivery::Endpoint;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::refusal::Refusal;
use crate::http::api::key_generation;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::reader::Reader;
use crate::http::forms::{replay, report, webhook};
use crate::http::idempotency::IdempotentRequest;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::endpoint_answer::EndpointAnswer;
use crate::http::views::grade::GradeView;
use crate::http::views::integration::Integration;
use crate::http::views::replay::Enabled;
use crate::http::views::secret::RotatedSecret;
use crate::store::webhooks;
use crate::store::webhooks::integrations;

/// GET /v1/system-integrators/taxpayers/{id}/webhook: returns the integration record.
pub(crate) async fn get_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let found = webhooks::with_failing(state.store.reader(), taxpayer.id).await?;
    let (endpoint, failing) = found.ok_or(Refusal::WebhookNotConfigured)?;
    let kinds = integrations::kinds_owned_by(state.store.reader(), taxpayer.id).await?;
    let view = Integration::new(&endpoint, &kinds).faring(failing.as_ref());
    Ok(ApiResponse::ok("Webhook retrieved successfully", view))
}

/// PUT /v1/system-integrators/taxpayers/{id}/webhook (also PATCH and POST): Update Webhook.
pub(crate) async fn update_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let policy = state.urls_of(taxpayer.id).await?;
    let read = |reader: &mut Reader<'_>| webhook::read(reader, &policy);
    let form = report::read(&*body.object().await?, &state.catalog.get(), read)?;
    let webhook::Webhook { url, enabled_events, retry_schedule } = form.value;
    let change = WebhookChange { url, enabled_events, retry_schedule, by: Actor::Integrator(integrator) };
    let kinds = integrations::kinds_owned_by(state.store.reader(), taxpayer.id).await?;
    let show = move |endpoint: &Endpoint| {
        let view = Integration::new(endpoint, &kinds);
        ApiResponse::ok("Webhook updated successfully", view).warn(&form.warnings)
    };
    let send = async |taxpayers: TaxpayerHandle| taxpayers.set_webhook(taxpayer.id, change).await;
    idempotent.answer(&state.taxpayers, show, send).await
}

/// POST /v1/system-integrators/taxpayers/{id}/webhook/secret: creates a new signing secret, which is shown only here,
/// or a new key pair, whose public key alone is shown.
pub(crate) async fn rotate_webhook_secret(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let form = report::read(&*body.object_or_nothing().await?, &state.catalog.get(), webhook::read_secret)?;
    let secret = key_generation::webhook_secret(form.value);
    let by = Actor::Integrator(integrator);
    idempotent.unshown(&state.taxpayers).rotate_secret(taxpayer.id, secret.clone(), by).await?;
    let (public_key, shared) = (secret.public_key(), secret.text());
    let shared = public_key.is_none().then(|| shared.expose_secret());
    let data = RotatedSecret { secret: shared, public_key: public_key.as_deref() };
    Ok(ApiResponse::ok("Webhook secret rotated successfully", data).warn(&form.warnings).unstored())
}

/// POST /v1/system-integrators/taxpayers/{id}/webhook/test (also GET): sends a test delivery and returns the
/// endpoint's answer, or with `grade=true` the endpoint's grade.
pub(crate) async fn test_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let attempt = if query.flag("grade")? {
        match state.delivery.grade(taxpayer.id).await? {
            GradingOutcome::Graded(graded) => {
                let message = format!("Webhook graded {}: {} of 100 points", graded.grade, graded.score);
                return Ok(ApiResponse::ok(message, GradeView::from(&graded)));
            }
            GradingOutcome::Unanswered(attempt) => attempt,
        }
    } else {
        state.delivery.send_test_delivery(taxpayer.id).await?
    };
    let answer = EndpointAnswer::of(&attempt)?;
    let message = format!("Connection test successful! Response code: {}", answer.status);
    Ok(ApiResponse::ok(message, answer.body))
}

/// POST /v1/system-integrators/taxpayers/{id}/webhook/enable: enables the webhook, and replays missed events if the
/// body asks for it.
pub(crate) async fn enable_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let form = report::read(&*body.object_or_nothing().await?, &state.catalog.get(), replay::read_enable)?;
    let (endpoint, replay) = state.taxpayers.enable_endpoint(taxpayer.id, form.value.scope()).await?;
    let kinds = integrations::kinds_owned_by(state.store.reader(), taxpayer.id).await?;
    let view = Enabled::new(&endpoint, &kinds, replay.as_ref());
    Ok(ApiResponse::ok("Webhook enabled successfully", view).warn(&form.warnings))
}
