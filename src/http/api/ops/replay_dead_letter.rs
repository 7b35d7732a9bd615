//! POST /ops/webhooks/dead-letters/{id}/replay: a dead letter once more, by an operator.

use actix_web::web;

use crate::actors::taxpayer::command::ReplayRequest;
use crate::domain::access::caller::OperatorCaller;
use crate::domain::events::replay::ReplayRange;
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::reason;
use crate::http::forms::report;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::ReplayView;
use crate::store::webhooks::delivery_log;

pub(crate) async fn replay_dead_letter(
    state: web::Data<ApiState>,
    OperatorCaller(operator_id): OperatorCaller,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object_or_nothing().await?, &state.catalog.get(), reason::read)?;
    let id = path_ids::uuid(&id).ok_or(Refusal::DeliveryNotFound)?;
    let dead = delivery_log::dead_with_id(&state.store, id).await?.ok_or(Refusal::DeliveryNotFound)?;
    let by = Some((OperatorRequest { operator_id, reason: form.value.0 }, Some(dead.id)));
    let order = ReplayRequest { range: ReplayRange::only(dead.sequence), by };
    let replay = state.taxpayers.replay(dead.taxpayer_id, order).await?;
    let answer = ApiResponse::ok("Webhook delivery queued successfully", ReplayView::from(&replay));
    Ok(answer.warn(&form.warnings))
}
