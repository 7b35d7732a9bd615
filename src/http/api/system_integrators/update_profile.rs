//! PATCH /v1/system-integrators/taxpayers/{id}/profile: what completes a business profile.

use actix_web::web;

use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::kernel::audit::Actor;
use crate::domain::party::Taxpayer;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::profile;
use crate::http::forms::report;
use crate::http::idempotency::IdempotentRequest;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::taxpayer::ProfileView;
use crate::store::accounts::taxpayers;

pub(crate) async fn update_profile(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let form = report::read(&*body.object().await?, &state.catalog.get(), profile::read)?;
    let (change, warnings) = (form.value, form.warnings);
    let contacts = taxpayers::contacts_of(&state.store, taxpayer.id).await?;
    let show = move |taxpayer: &Taxpayer| {
        let view = ProfileView::new(taxpayer, &contacts);
        ApiResponse::ok("Taxpayer profile updated successfully", view).warn(&warnings)
    };
    let by = Actor::Integrator(integrator);
    let send = async |taxpayers: TaxpayerHandle| taxpayers.change_profile(taxpayer.id, change, by).await;
    idempotent.answer(&state.taxpayers, show, send).await
}
