//! GET /v1/system-integrators/taxpayers/{id}/webhook/replay: how far the latest replay has come; null before the first.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::replay::ReplayView;
use crate::store::webhooks;
use crate::store::webhooks::replays;

pub(crate) async fn get_replay(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let latest = replays::latest_owned_by(state.store.reader(), taxpayer.id).await?;
    let endpoint = webhooks::owned_by(state.store.reader(), taxpayer.id).await?;
    let view = latest.as_ref().map(|replay| ReplayView::at(endpoint.as_ref(), replay));
    Ok(Answer::ok("Webhook replay retrieved successfully", view))
}
