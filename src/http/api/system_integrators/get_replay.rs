//! GET /v1/system-integrators/taxpayers/{id}/webhook/replay: how far the latest replay has come; null before the first.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::ReplayView;
use crate::store::webhooks;
use crate::store::webhooks::replays;

pub(crate) async fn get_replay(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let latest = replays::latest_owned_by(state.store.reader(), taxpayer.id).await?;
    let endpoint = webhooks::owned_by(state.store.reader(), taxpayer.id).await?;
    let view = latest.as_ref().map(|replay| ReplayView::at(endpoint.as_ref(), replay));
    Ok(ApiResponse::ok("Webhook replay retrieved successfully", view))
}
