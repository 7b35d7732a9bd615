//! GET /v1/system-integrators/taxpayers/{id}/webhook: the integration record.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::domain::kernel::refusal::Refusal;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::integration::Integration;
use crate::store::webhooks;
use crate::store::webhooks::integrations;

pub(crate) async fn get_webhook(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let found = webhooks::with_failing(state.store.reader(), taxpayer.id).await?;
    let (endpoint, failing) = found.ok_or(Refusal::WebhookNotConfigured)?;
    let kinds = integrations::kinds_owned_by(state.store.reader(), taxpayer.id).await?;
    let view = Integration::new(&endpoint, &kinds).faring(failing.as_ref());
    Ok(Answer::ok("Webhook retrieved successfully", view))
}
