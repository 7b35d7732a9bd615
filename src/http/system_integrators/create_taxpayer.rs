//! POST /v1/system-integrators/taxpayers: Create Taxpayer.

use actix_web::http::StatusCode;
use actix_web::web;

use crate::actors::taxpayer::command::{NewContact, Onboarding};
use crate::domain::caller::IntegratorCaller;
use crate::domain::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::Taxpayer;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::report;
use crate::http::forms::taxpayer::{self, ContactPerson, NewTaxpayer};
use crate::http::idempotency::Keyed;
use crate::http::password;
use crate::http::state::State;
use crate::http::views::taxpayer::CreatedTaxpayer;
use crate::store::ids::IdKind;

pub(crate) async fn create_taxpayer(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    keyed: Keyed,
    body: Body,
) -> Result<Answer, ApiError> {
    let body = body.object().await?;
    let form = report::read(&body, &state.catalog.get(), taxpayer::read)?;
    let onboarding = onboarding(&state, integrator, form.value).await?;
    let id = TaxpayerId(state.store.ids().next(IdKind::Taxpayer).await?);
    let show = move |taxpayer: &Taxpayer| {
        let view = CreatedTaxpayer::from(taxpayer);
        let answer = Answer::with_status(StatusCode::CREATED, "Taxpayer created successfully", view);
        answer.warn(&form.warnings)
    };
    keyed.answer(&state.taxpayers, show, async |taxpayers| taxpayers.onboard(id, onboarding).await).await
}

async fn onboarding(
    state: &State,
    integrator_id: IntegratorId,
    new: NewTaxpayer,
) -> Result<Onboarding, ApiError> {
    Ok(Onboarding {
        integrator_id,
        contact: contact(state, new.contact).await?,
        name: new.name,
        email: new.email,
        tin: new.tin,
        phone: new.phone,
        nature_of_business: new.nature_of_business,
        service_id: new.service_id,
        business_id: new.business_id,
        address: new.address,
    })
}

/// Who was given no password signs in with the deployment's and must change it then.
async fn contact(state: &State, person: ContactPerson) -> Result<NewContact, ApiError> {
    let must_change_password = person.password.is_none();
    let password = person.password.unwrap_or_else(|| state.settings.default_contact_password.clone());
    Ok(NewContact {
        password_hash: password::hash_aside(password).await?,
        must_change_password,
        first_name: person.first_name,
        last_name: person.last_name,
        email: person.email,
        phone: person.phone,
    })
}
