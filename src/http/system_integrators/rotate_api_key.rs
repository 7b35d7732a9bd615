//! POST /v1/system-integrators/taxpayers/{id}/api-key/rotate (PUT and PATCH too): a new key, shown only here. The old
//! one is refused from then on, unless the query asks for an overlap.

use actix_web::web;
use secrecy::ExposeSecret;

use crate::domain::access::api_key::NewKey;
use crate::domain::access::caller::{IntegratorCaller, KeyKind};
use crate::domain::kernel::audit::Actor;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::key_terms;
use crate::http::idempotency::Keyed;
use crate::http::query::Query;
use crate::http::state::State;
use crate::http::views::secret::RotatedKey;
use crate::http::{ident, secrets};

pub(crate) async fn rotate_api_key(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    keyed: Keyed,
    id: web::Path<String>,
    query: Query,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let terms = key_terms::of_query(&query)?;
    key_terms::check_end(&terms, state.now())?;
    let key = secrets::key(KeyKind::Taxpayer)?;
    let by = Actor::Integrator(integrator);
    let new = NewKey { text: key.clone(), terms };
    keyed.unshown(&state.taxpayers).rotate_key(taxpayer.id, new, by).await?;
    let data = RotatedKey { taxpayer_id: taxpayer.id, api_key: key.expose_secret() };
    Ok(Answer::ok("API key rotated successfully", data).unstored())
}
