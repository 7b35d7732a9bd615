//! POST /v1/system-integrators/taxpayers/{id}/webhook/deliveries/{delivery_id}/replay: one event once more, whatever
//! became of it.

use actix_web::web;

use crate::actors::taxpayer::command::ReplayRequest;
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::replay::ReplayRange;
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::ReplayView;
use crate::store::webhooks::delivery_log;

pub(crate) async fn replay_delivery(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    path: web::Path<(String, String)>,
) -> Result<ApiResponse, ApiError> {
    let (taxpayer, delivery) = path.into_inner();
    let taxpayer = path_ids::taxpayer(&state, integrator, &taxpayer).await?;
    let delivery = path_ids::uuid(&delivery).ok_or(Refusal::DeliveryNotFound)?;
    let found = delivery_log::owned_by_with_id(&state.store, taxpayer.id, delivery).await?;
    let sequence = found.ok_or(Refusal::DeliveryNotFound)?.sequence;
    let order = ReplayRequest { range: ReplayRange::only(sequence), by: None };
    let replay = state.taxpayers.replay(taxpayer.id, order).await?;
    Ok(ApiResponse::ok("Webhook delivery queued successfully", ReplayView::from(&replay)))
}
