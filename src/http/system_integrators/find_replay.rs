//! GET /v1/system-integrators/taxpayers/{id}/webhook/replays/{replay_id}: how far one of them has come.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::replay::Replay;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::replay::ReplayView;
use crate::store::webhooks;
use crate::store::webhooks::replays;

pub(crate) async fn find_replay(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    path: web::Path<(String, String)>,
) -> Result<Answer, ApiError> {
    let (taxpayer, replay) = path.into_inner();
    let taxpayer = ident::taxpayer(&state, integrator, &taxpayer).await?;
    let found = find(&state, taxpayer.id, &replay).await?;
    let endpoint = webhooks::owned_by(state.store.reader(), taxpayer.id).await?;
    let view = ReplayView::at(endpoint.as_ref(), &found);
    Ok(Answer::ok("Webhook replay retrieved successfully", view))
}

/// The taxpayer's replay that a path names.
pub(super) async fn find(state: &State, taxpayer: TaxpayerId, text: &str) -> Result<Replay, ApiError> {
    let id = ident::uuid(text).ok_or(Refusal::ReplayNotFound)?;
    let found = replays::owned_by_with_id(&state.store, taxpayer, id).await?;
    Ok(found.ok_or(Refusal::ReplayNotFound)?)
}
