//! POST /v1/system-integrators/taxpayers/{id}/webhook/replay: a part of the log is delivered once more.

use actix_web::web;

use crate::actors::taxpayer::command::ReplayOrder;
use crate::domain::caller::IntegratorCaller;
use crate::domain::replay::ReplayRange;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::{replay, report};
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::replay::ReplayView;

pub(crate) async fn replay_webhook(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    body: Body,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let form = report::read(&body.object().await?, &state.catalog.get(), replay::read)?;
    let first = form.value.since.sequence(&state, taxpayer.id).await?;
    let range = ReplayRange::since(form.value.only, first);
    let replay = state.taxpayers.replay(taxpayer.id, ReplayOrder { range, by: None }).await?;
    let answer = Answer::ok("Webhook replay started successfully", ReplayView::from(&replay));
    Ok(answer.warn(&form.warnings))
}
