//! POST /v1/system-integrators/taxpayers/{id}/api-key/rotate (PUT and PATCH too): a new key, shown only
//! here; the old one is refused from then on.

use actix_web::web;
use secrecy::ExposeSecret;

use crate::domain::audit::Actor;
use crate::domain::caller::{IntegratorCaller, KeyKind};
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::idempotency::Keyed;
use crate::http::state::State;
use crate::http::views::secret::RotatedKey;
use crate::http::{ident, secrets};

pub(crate) async fn rotate_api_key(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    keyed: Keyed,
    id: web::Path<String>,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let key = secrets::key(KeyKind::Taxpayer)?;
    let by = Actor::Integrator(integrator);
    keyed.unshown(&state.taxpayers).rotate_key(taxpayer.id, key.clone(), by).await?;
    let data = RotatedKey { taxpayer_id: taxpayer.id, api_key: key.expose_secret() };
    Ok(Answer::ok("API key rotated successfully", data).unstored())
}
