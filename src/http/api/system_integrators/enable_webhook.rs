//! POST /v1/system-integrators/taxpayers/{id}/webhook/enable: back in service, and what it missed if that is wanted.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::replay;
use crate::http::forms::report;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::Enabled;
use crate::store::webhooks::integrations;

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
