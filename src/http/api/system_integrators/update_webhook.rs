//! PUT /v1/system-integrators/taxpayers/{id}/webhook (PATCH and POST too): Update Webhook.

use actix_web::web;

use crate::actors::taxpayer::command::WebhookChange;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::delivery::Endpoint;
use crate::domain::kernel::audit::Actor;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::reader::Reader;
use crate::http::forms::report;
use crate::http::forms::webhook;
use crate::http::idempotency::IdempotentRequest;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::integration::Integration;
use crate::store::webhooks::integrations;

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
