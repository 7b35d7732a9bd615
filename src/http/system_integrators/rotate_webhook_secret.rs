//! POST /v1/system-integrators/taxpayers/{id}/webhook/secret: a new signing secret, shown only here.

use actix_web::web;
use secrecy::ExposeSecret;

use crate::domain::caller::IntegratorCaller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::idempotency::Keyed;
use crate::http::state::State;
use crate::http::views::secret::RotatedSecret;
use crate::http::{ident, secrets};

pub(crate) async fn rotate_webhook_secret(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    keyed: Keyed,
    id: web::Path<String>,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let secret = secrets::webhook_secret();
    keyed.unshown(&state.taxpayers).rotate_secret(taxpayer.id, secret.clone()).await?;
    let data = RotatedSecret { secret: secret.expose_secret() };
    Ok(Answer::ok("Webhook secret rotated successfully", data).unstored())
}
