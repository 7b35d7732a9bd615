//! POST /v1/system-integrators/taxpayers/{id}/webhook/replay: a part of the log is delivered once more.

use actix_web::web;

use crate::actors::taxpayer::command::ReplayRequest;
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::replay::{Replay, ReplayRange, ReplayScope};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::replay;
use crate::http::forms::report;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::replay::ReplayView;
use crate::store::events;
use crate::store::webhooks;

pub(crate) async fn replay_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let form = report::read(&*body.object().await?, &state.catalog.get(), replay::read)?;
    let first = events::sequence_at(&state.store, taxpayer.id, form.value.since).await?;
    let range = ReplayRange::since(form.value.only, first);
    let replay = state.taxpayers.replay(taxpayer.id, ReplayRequest { range, by: None }).await?;
    let remark = remark(&state, &replay).await?;
    let answer = ApiResponse::ok("Webhook replay started successfully", ReplayView::from(&replay));
    let warnings: Vec<_> = form.warnings.into_iter().chain(remark).collect();
    Ok(answer.warn(&warnings))
}

/// Why nothing comes of a replay, where that is plain from the start.
async fn remark(state: &ApiState, replay: &Replay) -> Result<Option<String>, ApiError> {
    if replay.is_empty() {
        return Ok(Some("nothing is replayed: the log has no event from there on".to_owned()));
    }
    let endpoint = webhooks::owned_by(state.store.reader(), replay.taxpayer_id).await?;
    let names_none = endpoint.is_some_and(|endpoint| endpoint.enabled_kinds().is_empty());
    let is_idle = names_none && replay.scope == ReplayScope::Missing;
    Ok(is_idle.then(|| "nothing is missing: no event is among enabled_events".to_owned()))
}
