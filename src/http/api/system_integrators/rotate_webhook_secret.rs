//! POST /v1/system-integrators/taxpayers/{id}/webhook/secret: a new signing secret, shown only here, or a new key pair,
//! of which only the public key is shown.

use actix_web::web;
use secrecy::ExposeSecret;

use crate::domain::access::caller::IntegratorCaller;
use crate::domain::kernel::audit::Actor;
use crate::http::api::key_generation;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::report;
use crate::http::forms::webhook;
use crate::http::idempotency::IdempotentRequest;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::secret::RotatedSecret;

pub(crate) async fn rotate_webhook_secret(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let form = report::read(&*body.object_or_nothing().await?, &state.catalog.get(), webhook::read_secret)?;
    let secret = key_generation::webhook_secret(form.value);
    let by = Actor::Integrator(integrator);
    idempotent.unshown(&state.taxpayers).rotate_secret(taxpayer.id, secret.clone(), by).await?;
    let (public_key, shared) = (secret.public_key(), secret.text());
    let shared = public_key.is_none().then(|| shared.expose_secret());
    let data = RotatedSecret { secret: shared, public_key: public_key.as_deref() };
    Ok(ApiResponse::ok("Webhook secret rotated successfully", data).warn(&form.warnings).unstored())
}
