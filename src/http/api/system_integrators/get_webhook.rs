//! GET /v1/system-integrators/taxpayers/{id}/webhook: the integration record.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::integration::Integration;
use crate::store::webhooks;
use crate::store::webhooks::integrations;

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
