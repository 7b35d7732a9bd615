//! POST /v1/system-integrators/taxpayers: Create Taxpayer.

use actix_web::http::StatusCode;
use actix_web::web;

use crate::actors::taxpayer::command::{NewContact, Onboarding};
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::Taxpayer;
use crate::http::extract::body::Body;
use crate::http::forms::report;
use crate::http::forms::taxpayer::{self, ContactPerson, NewTaxpayer};
use crate::http::idempotency::IdempotentRequest;
use crate::http::limits;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::taxpayer::CreatedTaxpayer;
use crate::store::accounts::taxpayers;
use crate::store::db::ids::IdKind;

pub(crate) async fn create_taxpayer(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), taxpayer::read)?;
    let id = TaxpayerId(state.store.ids().next(IdKind::Taxpayer).await?);
    let onboarding = onboarding(&state, (integrator, id), form.value).await?;
    let show = move |taxpayer: &Taxpayer| {
        let view = CreatedTaxpayer::from(taxpayer);
        let answer = ApiResponse::with_status(StatusCode::CREATED, "Taxpayer created successfully", view);
        answer.warn(&form.warnings)
    };
    idempotent.answer(&state.taxpayers, show, async |taxpayers| taxpayers.onboard(id, onboarding).await).await
}

/// Asks for the unique names before the password is hashed, which costs a hundred times as much. What is found taken is
/// refused by the taxpayer's actor all the same: it knows whether the request was carried out before under its key.
async fn onboarding(
    state: &ApiState,
    (integrator_id, id): (IntegratorId, TaxpayerId),
    new: NewTaxpayer,
) -> Result<Onboarding, ApiError> {
    let person = new.contact;
    let mut onboarding = Onboarding {
        integrator_id,
        contact: contact(&person),
        name: new.name,
        email: new.email,
        tin: new.tin,
        phone: new.phone,
        nature_of_business: new.nature_of_business,
        service_id: new.service_id,
        business_id: new.business_id,
        address: new.address,
        conflicts: Faults::default(),
    };
    let taxpayer = onboarding.taxpayer(id, state.now());
    onboarding.conflicts = taxpayers::taken(state.store.reader(), &taxpayer, Some(&person.email)).await?;
    if onboarding.conflicts.is_empty() {
        let kept = state.passwords.keep(person.password).await?;
        onboarding.contact.password_hash = kept.hash;
        onboarding.contact.must_change_password = kept.must_change;
    } else {
        state.limits.refused_create(integrator_id, state.now()).map_err(limits::refused)?;
    }
    Ok(onboarding)
}

/// Without a hash yet.
fn contact(person: &ContactPerson) -> NewContact {
    NewContact {
        password_hash: String::new(),
        must_change_password: true,
        first_name: person.first_name.clone(),
        last_name: person.last_name.clone(),
        email: person.email.clone(),
        phone: person.phone.clone(),
    }
}
