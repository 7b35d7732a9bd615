//! Builds the accounts of new taxpayers, for the API and for the pages of integrators: looks for values that other
//! accounts have, checks the quota and hashes the password. Also limits how many emails a caller can try with other
//! changes that are refused if another account has the email.

use crate::actors::taxpayer::commands::Onboard;
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::{NewContact, ProfileChange, Taxpayer};
use crate::http::forms::taxpayer::{ContactPerson, NewTaxpayer};
use crate::http::limits;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::{people, taken_values, taxpayers};

/// Builds the account of a new taxpayer. Values that another account has already, such as the tax number, are listed in
/// `conflicts`. If there are any, the password is not hashed, because hashing is expensive. The quota is checked first:
/// an integrator that can create nothing more must not find out which values are taken.
pub(crate) async fn build_onboarding(
    state: &ApiState,
    integrator_id: IntegratorId,
    id: TaxpayerId,
    new: NewTaxpayer,
) -> Result<Onboard, ApiError> {
    check_quota(state, integrator_id).await?;
    let person = new.contact;
    let mut onboarding = Onboard {
        integrator_id,
        contact: new_contact(&person),
        name: new.name,
        email: new.email,
        tin: new.tin,
        phone: new.phone,
        nature_of_business: new.nature_of_business,
        service_id: new.service_id,
        business_id: new.business_id,
        address: new.address,
        place: new.place,
        conflicts: Faults::default(),
    };
    let taxpayer = onboarding.new_taxpayer(id, state.now());
    onboarding.conflicts =
        taken_values::find_taken_values(state.store.reader(), &taxpayer, Some(&person.email))
            .await?;
    let now = state.now();
    let allowance = if onboarding.conflicts.is_empty() {
        state.limits.count_onboarding(integrator_id, now)
    } else {
        state.limits.count_refused_create(integrator_id, now)
    };
    allowance.map_err(limits::limit_error)?;
    if let Some(password) = person.password.filter(|_| onboarding.conflicts.is_empty()) {
        let salt = people::find_password_hash_by_email(&state.store, &person.email).await?;
        onboarding.contact.password_hash = Some(
            state
                .passwords
                .hash_for_integrator(integrator_id, password, salt)
                .await?,
        );
    }
    Ok(onboarding)
}

/// The rule of the fault for a value that another account has.
const TAKEN_RULE: &str = "unique";

/// Returns the integrator for which `change_counting_taken_email` counts a change of a profile; `None` if the change
/// sets no new email.
pub(crate) fn integrator_with_email_limit(
    taxpayer: &Taxpayer,
    change: &ProfileChange,
) -> Option<IntegratorId> {
    let sets_email = change
        .email
        .as_ref()
        .is_some_and(|email| *email != taxpayer.email);
    sets_email.then_some(taxpayer.integrator_id)
}

/// Makes a change that is refused if another account has its email. Such a refusal uses up a part of the allowance of
/// `integrator`, if one is given. The part is taken before the change and given back if the change was not refused for
/// this reason. So once the allowance is used up, a free email gets the same error as a taken one, and nobody can try
/// further emails.
pub(crate) async fn change_counting_taken_email<T>(
    state: &ApiState,
    integrator: Option<IntegratorId>,
    change: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let Some(integrator) = integrator else {
        return change.await;
    };
    state
        .limits
        .count_refused_create(integrator, state.now())
        .map_err(limits::limit_error)?;
    let result = change.await;
    if !result.as_ref().is_err_and(is_about_taken_value) {
        state
            .limits
            .give_back_refused_create(integrator, state.now());
    }
    result
}

fn is_about_taken_value(error: &ApiError) -> bool {
    error.faults.iter().any(|fault| fault.rule() == TAKEN_RULE)
}

/// Refuses a taxpayer beyond the integrator's quota. Taxpayers that are created at the same moment may exceed it.
async fn check_quota(state: &ApiState, integrator: IntegratorId) -> Result<(), ApiError> {
    let max = state.settings.taxpayers_per_integrator_max;
    if max == 0 || taxpayers::count_owned_by(&state.store, integrator).await? < max {
        return Ok(());
    }
    let message = format!(
        "An integrator may have {max} taxpayers here; ask the operator of this service for more"
    );
    Err(ApiError::new(ErrorCode::TaxpayerLimitReached, message))
}

/// Returns the contact person without a password, which `build_onboarding` sets later if the body has one.
fn new_contact(person: &ContactPerson) -> NewContact {
    NewContact {
        password_hash: None,
        first_name: person.first_name.clone(),
        last_name: person.last_name.clone(),
        email: person.email.clone(),
        phone: person.phone.clone(),
    }
}
