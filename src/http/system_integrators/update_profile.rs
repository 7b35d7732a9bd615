//! PATCH /v1/system-integrators/taxpayers/{id}/profile: what completes a business profile.

use actix_web::web;

use crate::actors::taxpayer::door::Taxpayers;
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::kernel::audit::Actor;
use crate::domain::party::Taxpayer;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::{profile, report};
use crate::http::idempotency::Keyed;
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::taxpayer::ProfileView;
use crate::store::accounts::taxpayers;

pub(crate) async fn update_profile(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    keyed: Keyed,
    body: Body,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let form = report::read(&*body.object().await?, &state.catalog.get(), profile::read)?;
    let (change, warnings) = (form.value, form.warnings);
    let contacts = taxpayers::contacts_of(&state.store, taxpayer.id).await?;
    let show = move |taxpayer: &Taxpayer| {
        let view = ProfileView::new(taxpayer, &contacts);
        Answer::ok("Taxpayer profile updated successfully", view).warn(&warnings)
    };
    let by = Actor::Integrator(integrator);
    let send = async |taxpayers: Taxpayers| taxpayers.change_profile(taxpayer.id, change, by).await;
    keyed.answer(&state.taxpayers, show, send).await
}
