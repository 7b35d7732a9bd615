//! GET /v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}: how far one of them has come.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::replay::Replay;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::ReplayView;
use crate::store::webhooks;
use crate::store::webhooks::replays;

pub(crate) async fn find_replay(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    path: web::Path<(String, String)>,
) -> Result<ApiResponse, ApiError> {
    let (taxpayer, replay) = path.into_inner();
    let taxpayer = path_ids::taxpayer(&state, integrator, &taxpayer).await?;
    let found = find(&state, taxpayer.id, &replay).await?;
    let endpoint = webhooks::owned_by(state.store.reader(), taxpayer.id).await?;
    let view = ReplayView::at(endpoint.as_ref(), &found);
    Ok(ApiResponse::ok("Webhook replay retrieved successfully", view))
}

/// The taxpayer's replay that a path names.
pub(super) async fn find(state: &ApiState, taxpayer: TaxpayerId, text: &str) -> Result<Replay, ApiError> {
    let id = path_ids::uuid(text).ok_or(Refusal::ReplayNotFound)?;
    let found = replays::owned_by_with_id(&state.store, taxpayer, id).await?;
    Ok(found.ok_or(Refusal::ReplayNotFound)?)
}
