//! POST /v1/tax-payers/webhook/dead-letters/{delivery_id}/replay: one of them once more, by its taxpayer.

use actix_web::web;

use crate::actors::taxpayer::command::ReplayOrder;
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::events::replay::ReplayRange;
use crate::domain::kernel::refusal::Refusal;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::replay::ReplayView;
use crate::store::webhooks::delivery_log;

pub(crate) async fn replay_own_dead_letter(
    state: web::Data<State>,
    TaxpayerCaller(id): TaxpayerCaller,
    delivery: web::Path<String>,
) -> Result<Answer, ApiError> {
    let delivery = ident::uuid(&delivery).ok_or(Refusal::DeliveryNotFound)?;
    let dead = delivery_log::dead_owned_by_with_id(&state.store, id, delivery).await?;
    let sequence = dead.ok_or(Refusal::DeliveryNotFound)?.sequence;
    let order = ReplayOrder { range: ReplayRange::only(sequence), by: None };
    let replay = state.taxpayers.replay(id, order).await?;
    Ok(Answer::ok("Webhook delivery queued successfully", ReplayView::from(&replay)))
}
