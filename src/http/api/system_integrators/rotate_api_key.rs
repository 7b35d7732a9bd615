//! POST /v1/system-integrators/taxpayers/{id}/api-key/rotate (PUT and PATCH too): a new key, shown only here. The old
//! one is refused from then on, unless the query asks for an overlap.

use actix_web::web;
use secrecy::ExposeSecret;

use crate::domain::access::api_key::NewKey;
use crate::domain::access::caller::{IntegratorCaller, KeyKind};
use crate::domain::kernel::audit::Actor;
use crate::http::api::key_generation;
use crate::http::extract::path_ids;
use crate::http::forms::key_terms;
use crate::http::forms::query::Query;
use crate::http::idempotency::IdempotentRequest;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::secret::RotatedKey;

pub(crate) async fn rotate_api_key(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    id: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let terms = key_terms::of_query(&query)?;
    key_terms::check_end(&terms, state.now())?;
    let key = key_generation::key(KeyKind::Taxpayer)?;
    let by = Actor::Integrator(integrator);
    let new = NewKey { text: key.clone(), terms };
    idempotent.unshown(&state.taxpayers).rotate_key(taxpayer.id, new, by).await?;
    let data = RotatedKey { taxpayer_id: taxpayer.id, api_key: key.expose_secret() };
    Ok(ApiResponse::ok("API key rotated successfully", data).unstored())
}
