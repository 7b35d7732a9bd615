//! POST /v1/system-integrators/taxpayers/{id}/webhook/secret: a new signing secret, shown only here, or a new key pair,
//! of which only the public key is shown.

use actix_web::web;
use secrecy::ExposeSecret;

use crate::domain::access::caller::IntegratorCaller;
use crate::domain::kernel::audit::Actor;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::{report, webhook};
use crate::http::idempotency::Keyed;
use crate::http::state::State;
use crate::http::views::secret::RotatedSecret;
use crate::http::{ident, secrets};

pub(crate) async fn rotate_webhook_secret(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    keyed: Keyed,
    id: web::Path<String>,
    body: Body,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let form = report::read(&*body.object_or_nothing().await?, &state.catalog.get(), webhook::read_secret)?;
    let secret = secrets::webhook_secret(form.value);
    let by = Actor::Integrator(integrator);
    keyed.unshown(&state.taxpayers).rotate_secret(taxpayer.id, secret.clone(), by).await?;
    let (public_key, shared) = (secret.public_key(), secret.text());
    let shared = public_key.is_none().then(|| shared.expose_secret());
    let data = RotatedSecret { secret: shared, public_key: public_key.as_deref() };
    Ok(Answer::ok("Webhook secret rotated successfully", data).warn(&form.warnings).unstored())
}
