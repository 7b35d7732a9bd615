//! POST /ops/webhooks/dead-letters/replay: the dead letters of a taxpayer once more, by an operator.

use actix_web::web;

use crate::actors::taxpayer::command::ReplayRequest;
use crate::domain::access::caller::OperatorCaller;
use crate::domain::events::replay::{ReplayRange, ReplayScope};
use crate::domain::kernel::audit::OperatorRequest;
use crate::http::extract::body::Body;
use crate::http::forms::dead_letters;
use crate::http::forms::report;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::ReplayView;
use crate::store::accounts::taxpayers;
use crate::store::events;

pub(crate) async fn replay_dead_letters(
    state: web::Data<ApiState>,
    OperatorCaller(operator_id): OperatorCaller,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), dead_letters::read)?;
    let wanted = form.value;
    let taxpayer = taxpayers::with_id(state.store.reader(), wanted.taxpayer_id).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    let first = match wanted.since {
        Some(since) => events::sequence_at(&state.store, taxpayer.id, since).await?,
        None => 1,
    };
    let by = Some((OperatorRequest { operator_id, reason: wanted.reason }, None));
    let order = ReplayRequest { range: ReplayRange::since(ReplayScope::Failed, first), by };
    let replay = state.taxpayers.replay(taxpayer.id, order).await?;
    let answer = ApiResponse::ok("Webhook replay started successfully", ReplayView::from(&replay));
    Ok(answer.warn(&form.warnings))
}
