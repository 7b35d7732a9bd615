//! GET /v1/system-integrators/taxpayers/{id}/webhook: the integration record.

use actix_web::web;

use crate::domain::caller::IntegratorCaller;
use crate::domain::refusal::Refusal;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::integration::Integration;
use crate::store::webhooks;

pub(crate) async fn get_webhook(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let found = webhooks::with_failing(state.store.reader(), taxpayer.id).await?;
    let (endpoint, failing) = found.ok_or(Refusal::WebhookNotConfigured)?;
    let view = Integration::new(&endpoint, failing.as_ref());
    Ok(Answer::ok("Webhook retrieved successfully", view))
}
