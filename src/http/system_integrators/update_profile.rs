//! PATCH /v1/system-integrators/taxpayers/{id}/profile: what completes a business profile.

use actix_web::web;

use crate::domain::caller::IntegratorCaller;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::{profile, report};
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::taxpayer::ProfileView;
use crate::store::taxpayers;

pub(crate) async fn update_profile(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    body: Body,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let form = report::read(&body.object().await?, &state.catalog.get(), profile::read)?;
    let taxpayer = state.taxpayers.change_profile(taxpayer.id, form.value).await?;
    let contacts = taxpayers::contacts_of(&state.store, taxpayer.id).await?;
    let view = ProfileView::new(&taxpayer, &contacts);
    Ok(Answer::ok("Taxpayer profile updated successfully", view).warn(&form.warnings))
}
