//! POST /v1/tax-payers/webhook/dead-letters/{delivery_id}/replay: one of them once more, by its taxpayer.

use actix_web::web;

use crate::actors::taxpayer::command::ReplayRequest;
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::events::replay::ReplayRange;
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::ReplayView;
use crate::store::webhooks::delivery_log;

pub(crate) async fn replay_own_dead_letter(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    delivery: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let delivery = path_ids::uuid(&delivery).ok_or(Refusal::DeliveryNotFound)?;
    let dead = delivery_log::dead_owned_by_with_id(&state.store, id, delivery).await?;
    let sequence = dead.ok_or(Refusal::DeliveryNotFound)?.sequence;
    let order = ReplayRequest { range: ReplayRange::only(sequence), by: None };
    let replay = state.taxpayers.replay(id, order).await?;
    Ok(ApiResponse::ok("Webhook delivery queued successfully", ReplayView::from(&replay)))
}
