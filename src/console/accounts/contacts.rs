//! The people of an account: who may sign in, with which role, and the link with which a person chooses a password.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;

use crate::console::accounts::navigation::base_path;
use crate::console::filters;
use crate::console::form_values::{FormState, FormValues};
use crate::console::frame::Frame;
use crate::console::invitation::show_invitation_link;
use crate::console::page::{Answer, Form, go_to, show_with_status};
use crate::console::second_factor;
use crate::console::session::Confirmed;
use crate::console::session::accounts::{AccountSession, Owner};
use crate::domain::access::session::{ContactRole, SessionOwner};
use crate::domain::kernel::audit::{Actor, AuditAction};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::{ContactId, parse_id};
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::reader;
use crate::http::forms::reader::Reader as BodyReader;
use crate::http::invitations::{self, InvitationRequest};
use crate::http::onboarding;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::contacts::{
    self, ContactAccess, ContactChange, ContactChangeResult, NewPerson, PEOPLE_MAX,
};
use crate::store::accounts::second_factors::{self, FactorRemoval, FactorState};
use crate::store::accounts::{person_accounts, taxpayers};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/dashboard/{taxpayer}/contacts")
            .page(show_contacts)
            .form(add_contact),
        path("/dashboard/{taxpayer}/contacts/{contact}/invitation").form(invite_contact),
        path("/dashboard/{taxpayer}/contacts/{contact}/invitation/mail")
            .form(mail_invitation)
            .allows_form_repeat(),
        path("/dashboard/{taxpayer}/contacts/{contact}/role").form(set_role),
        path("/dashboard/{taxpayer}/contacts/{contact}/remove").form(remove_contact),
        path("/dashboard/{taxpayer}/contacts/{contact}/disable").form(disable_contact),
        path("/dashboard/{taxpayer}/contacts/{contact}/enable").form(enable_contact),
        path("/dashboard/{taxpayer}/contacts/{contact}/second-factor/reset")
            .form(reset_second_factor),
    ]
}

#[derive(Template)]
#[template(path = "accounts/contacts.html")]
struct ContactsPage {
    frame: Frame,
    base: String,
    people: Vec<PersonLine>,
    roles: Vec<(&'static str, &'static str)>,
    sends_mails: bool,
    form: FormState,
}

struct PersonLine {
    access: ContactAccess,
    /// The role in a word.
    role: &'static str,
    second_factor: FactorState,
    /// True if this is the person who is looking at the page.
    is_self: bool,
}

/// A new person, as entered in the form.
struct PersonForm {
    first_name: String,
    last_name: String,
    email: String,
    role: ContactRole,
}

fn read_person(reader: &mut BodyReader<'_>) -> Option<PersonForm> {
    let first_name = reader.required("first_name").text(TEXT_CHARS_MAX);
    let last_name = reader.required("last_name").text(TEXT_CHARS_MAX);
    let email = reader.required("email").email();
    let role = reader
        .required("role")
        .word(ContactRole::parse, ContactRole::allowed_words);
    Some(PersonForm {
        first_name: first_name?,
        last_name: last_name?,
        email: email?,
        role: role?,
    })
}

fn role_name(role: ContactRole) -> &'static str {
    match role {
        ContactRole::ReadOnly => "Read-only",
        ContactRole::Accountant => "Accountant",
        ContactRole::Owner => "Owner",
    }
}

fn describe_role(role: ContactRole) -> &'static str {
    match role {
        ContactRole::ReadOnly => "Read-only",
        ContactRole::Accountant => "Accountant: invoices, deliveries and the inbox",
        ContactRole::Owner => "Owner: everything, also keys, webhooks and people",
    }
}

async fn show_contacts(state: web::Data<ApiState>, Owner(session): Owner) -> Answer {
    render(&state, &session, FormState::default()).await
}

async fn render(state: &ApiState, session: &AccountSession, form: FormState) -> Answer {
    let people = contacts::owned_by(&state.store, session.taxpayer).await?;
    let owners = people
        .iter()
        .map(|access| session_owner(session, ContactId(access.contact.id)));
    let factors = second_factors::load_states(&state.store, owners, state.now()).await?;
    let lines = people.into_iter().map(|access| {
        let id = ContactId(access.contact.id);
        let is_self = session.by == Actor::Contact(id);
        PersonLine {
            role: role_name(access.role),
            access,
            second_factor: factors.get(session_owner(session, id)),
            is_self,
        }
    });
    let status = if form.is_refused() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = ContactsPage {
        frame: Frame::for_account(session, "People"),
        base: base_path(session),
        people: lines.collect(),
        roles: ContactRole::ALL
            .iter()
            .map(|role| (role.as_str(), describe_role(*role)))
            .collect(),
        sends_mails: state.settings.mails.are_sent,
        form,
    };
    show_with_status(status, &page)
}

/// POST of the form: adds a person, and shows the link with which the person chooses a password.
async fn add_contact(
    state: web::Data<ApiState>,
    request: HttpRequest,
    Confirmed(Owner(session)): Confirmed<Owner>,
    form: Form<FormValues>,
) -> Answer {
    match add_person(&state, &session, &form.0).await {
        Ok(id) => show_invitation(&state, &request, &session, id).await,
        Err(error) => {
            let refused = FormState::from_refusal(error, form.0)?;
            render(&state, &session, refused).await
        }
    }
}

/// Adds the person that the form describes.
async fn add_person(
    state: &ApiState,
    session: &AccountSession,
    form: &FormValues,
) -> Result<ContactId, ApiError> {
    let body = form.to_object(&["first_name", "last_name", "email", "role"]);
    let person_form = reader::read(&body, &state.catalog.get(), read_person)?.value;
    let person = NewPerson {
        first_name: person_form.first_name,
        last_name: person_form.last_name,
        email: person_form.email,
        role: person_form.role,
    };
    // Refused emails are counted and limited. Otherwise somebody could try many emails and learn which of them sign
    // in to other accounts.
    let integrator = taxpayers::load_payer(&state.store, session.taxpayer).await?;
    let added = store_person(state, session, &person);
    onboarding::change_counting_taken_email(state, integrator, added).await
}

/// Stores a person. Fails if somebody signs in with the email already, or if the account has enough people. People who
/// are added at the same moment may exceed the maximum.
async fn store_person(
    state: &ApiState,
    session: &AccountSession,
    person: &NewPerson,
) -> Result<ContactId, ApiError> {
    if contacts::owned_by(&state.store, session.taxpayer)
        .await?
        .len()
        >= PEOPLE_MAX
    {
        let sentence =
            format!("An account has {PEOPLE_MAX} people at most. Remove somebody who has left.");
        return Err(Fault::new("email", "max", sentence).into());
    }
    let added = contacts::add(&state.store, contact_change(state, session), person).await?;
    let sentence = "Somebody signs in with this email already.";
    added.ok_or_else(|| Fault::new("email", "unique", sentence).into())
}

/// POST …/invitation: shows a link with which a person chooses a first password, or a new one after forgetting it.
async fn invite_contact(
    state: web::Data<ApiState>,
    request: HttpRequest,
    Confirmed(Owner(session)): Confirmed<Owner>,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    show_invitation(&state, &request, &session, contact_id(&ids.1)?).await
}

/// POST …/invitation/mail: sends a person the link by mail.
async fn mail_invitation(
    state: web::Data<ApiState>,
    Confirmed(Owner(session)): Confirmed<Owner>,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let id = contact_id(&ids.1)?;
    let owner = session_owner(&session, id);
    let found = person_accounts::find_person(&state.store, owner).await?;
    let person = found.ok_or_else(ApiError::route_not_found)?;
    if session.by == owner.actor() || !state.settings.mails.are_sent {
        return Err(ApiError::route_not_found());
    }
    invitations::mail_invitation(&state, session.taxpayer, &person, session.by).await?;
    let notice = "The link is sent by mail. It works for 72 hours.";
    Ok(go_to(&format!("{}/contacts", base_path(&session)), notice))
}

async fn show_invitation(
    state: &ApiState,
    request: &HttpRequest,
    session: &AccountSession,
    id: ContactId,
) -> Answer {
    let invitation_request = InvitationRequest {
        owner: session_owner(session, id),
        by: session.by,
        reason: None,
        claim: None,
    };
    let invitation = invitations::make_invitation(state, request, invitation_request)
        .await?
        .ok_or_else(ApiError::route_not_found)?;
    show_invitation_link(
        Frame::for_account(session, "People"),
        invitation,
        format!("{}/contacts", base_path(session)),
    )
}

async fn set_role(
    state: web::Data<ApiState>,
    Confirmed(Owner(session)): Confirmed<Owner>,
    ids: web::Path<(String, String)>,
    form: Form<FormValues>,
) -> Answer {
    let id = contact_id(&ids.1)?;
    let role = ContactRole::parse(form.0.text("role")).ok_or_else(ApiError::route_not_found)?;
    let change = contact_change(&state, &session);
    let result = contacts::set_role(&state.store, change, id, role).await?;
    let notice = "The role was changed. It counts from the next page on.";
    let may_see_page = session.by != Actor::Contact(id) || role == ContactRole::Owner;
    if !may_see_page && matches!(result, ContactChangeResult::Done { .. }) {
        // The person is no longer an owner, and only owners may see the page of people.
        return Ok(go_to(&base_path(&session), notice));
    }
    respond_to_change(&session, result, notice)
}

async fn remove_contact(
    state: web::Data<ApiState>,
    Confirmed(Owner(session)): Confirmed<Owner>,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let id = contact_id(&ids.1)?;
    check_not_self(&session, id)?;
    let change = contact_change(&state, &session);
    let result = contacts::remove(&state.store, change, id).await?;
    let notice = "The person was removed and is signed out.";
    respond_to_change(&session, result, notice)
}

/// POST …/disable: ends the sessions of a person and refuses the person's password from now on.
async fn disable_contact(
    state: web::Data<ApiState>,
    Confirmed(Owner(session)): Confirmed<Owner>,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let id = contact_id(&ids.1)?;
    check_not_self(&session, id)?;
    let change = contact_change(&state, &session);
    let result = contacts::disable(&state.store, change, id).await?;
    let notice = "The person is disabled and is signed out.";
    respond_to_change(&session, result, notice)
}

/// POST …/enable: lets a disabled person sign in again.
async fn enable_contact(
    state: web::Data<ApiState>,
    Confirmed(Owner(session)): Confirmed<Owner>,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let id = contact_id(&ids.1)?;
    let change = contact_change(&state, &session);
    let result = contacts::enable(&state.store, change, id).await?;
    let notice = "The person is enabled and can sign in again.";
    respond_to_change(&session, result, notice)
}

/// POST …/second-factor/reset: removes the second factor of a person who lost it. People cannot reset their own.
async fn reset_second_factor(
    state: web::Data<ApiState>,
    Confirmed(Owner(session)): Confirmed<Owner>,
    ids: web::Path<(String, String)>,
    _: Form<FormValues>,
) -> Answer {
    let id = contact_id(&ids.1)?;
    if session.by == Actor::Contact(id) {
        return Err(ApiError::new(
            ErrorCode::InvalidTransition,
            second_factor::OWN_RESET_REFUSAL,
        ));
    }
    let removal = FactorRemoval {
        owner: session_owner(&session, id),
        by: session.by,
        action: AuditAction::ResetSecondFactor,
        reason: None,
        now: state.now(),
    };
    second_factors::remove(&state.store, removal)
        .await?
        .ok_or_else(ApiError::route_not_found)?;
    let notice = "The second factor is removed, and the person is signed out.";
    Ok(go_to(&format!("{}/contacts", base_path(&session)), notice))
}

fn session_owner(session: &AccountSession, id: ContactId) -> SessionOwner {
    SessionOwner::Contact {
        taxpayer: session.taxpayer,
        id,
    }
}

/// Refuses an action with which people would lock themselves out.
fn check_not_self(session: &AccountSession, id: ContactId) -> Result<(), ApiError> {
    if session.by == Actor::Contact(id) {
        let message = "You cannot remove or disable yourself. Another owner of the account can.";
        return Err(ApiError::new(ErrorCode::InvalidTransition, message));
    }
    Ok(())
}

fn contact_id(text: &str) -> Result<ContactId, ApiError> {
    parse_id(text)
        .map(ContactId)
        .ok_or_else(ApiError::route_not_found)
}

fn contact_change(state: &ApiState, session: &AccountSession) -> ContactChange {
    ContactChange {
        taxpayer: session.taxpayer,
        by: session.by,
        now: state.now(),
    }
}

fn respond_to_change(
    session: &AccountSession,
    result: ContactChangeResult,
    notice: &str,
) -> Answer {
    match result {
        ContactChangeResult::Done { .. } => {
            Ok(go_to(&format!("{}/contacts", base_path(session)), notice))
        }
        ContactChangeResult::Unknown => Err(ApiError::route_not_found()),
        ContactChangeResult::LastOwner => {
            let message = "An account keeps an owner. Make somebody else an owner first.";
            Err(ApiError::new(ErrorCode::InvalidTransition, message))
        }
    }
}
