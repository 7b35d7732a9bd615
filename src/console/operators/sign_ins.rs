//! The forms with which an admin helps people to sign in: one creates a one-time link for a person who has no password
//! or forgot it, the other removes a lost second factor. They work for operators, integrators and contact persons, but
//! not for the admin who sends them.

use actix_web::{HttpRequest, web};

use crate::console::frame::Frame;
use crate::console::invitation::show_invitation_link;
use crate::console::operators::reason::ReasonForm;
use crate::console::page::{Answer, Form, go_to};
use crate::console::second_factor;
use crate::console::session::Confirmed;
use crate::console::session::operators::Admin;
use crate::domain::access::session::SessionOwner;
use crate::domain::kernel::audit::{Actor, AuditAction};
use crate::domain::kernel::ids::{ContactId, IntegratorId, TaxpayerId, parse_id};
use crate::http::invitations::{self, InvitationRequest};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::second_factors::{self, FactorRemoval, FactorState};

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/operators/{operator}/invitation").form(invite_person),
        path("/console/operators/{operator}/second-factor/reset").form(reset_second_factor),
        path("/console/integrators/{integrator}/invitation").form(invite_person),
        path("/console/integrators/{integrator}/second-factor/reset").form(reset_second_factor),
        path("/console/taxpayers/{taxpayer}/contacts/{contact}/invitation").form(invite_person),
        path("/console/taxpayers/{taxpayer}/contacts/{contact}/second-factor/reset")
            .form(reset_second_factor),
    ]
}

/// A person in a list, with the forms that an admin may use for the person.
pub(super) struct PersonLine {
    /// The name of an integrator or of a contact person. Operators have no name.
    pub(super) name: Option<String>,
    pub(super) email: String,
    pub(super) role: &'static str,
    pub(super) second_factor: FactorState,
    /// The path below which the forms about this person are.
    pub(super) path: String,
    /// True if this is the operator who is looking at the page.
    pub(super) is_self: bool,
}

/// Returns the path below which the forms about a person are.
pub(super) fn person_path(owner: SessionOwner) -> String {
    match owner {
        SessionOwner::Operator(id) => format!("/console/operators/{id}"),
        SessionOwner::Integrator(id) => format!("/console/integrators/{id}"),
        SessionOwner::Contact { taxpayer, id } => {
            format!("/console/taxpayers/{taxpayer}/contacts/{id}")
        }
    }
}

/// The person that the path names, and the page that lists it.
struct PersonInPath {
    owner: SessionOwner,
    page: String,
}

fn person_in_path(request: &HttpRequest) -> Option<PersonInPath> {
    let number = |name: &str| request.match_info().get(name).and_then(parse_id);
    if let Some(id) = number("operator") {
        return Some(PersonInPath {
            owner: SessionOwner::Operator(id),
            page: "/console/operators".to_owned(),
        });
    }
    if let Some(id) = number("integrator") {
        let owner = SessionOwner::Integrator(IntegratorId(id));
        return Some(PersonInPath {
            owner,
            page: "/console/integrators".to_owned(),
        });
    }
    let taxpayer = TaxpayerId(number("taxpayer")?);
    let owner = SessionOwner::Contact {
        taxpayer,
        id: ContactId(number("contact")?),
    };
    Some(PersonInPath {
        owner,
        page: format!("/console/taxpayers/{taxpayer}"),
    })
}

/// POST …/invitation: shows a link with which a person chooses a password.
async fn invite_person(
    state: web::Data<ApiState>,
    request: HttpRequest,
    Confirmed(Admin(session)): Confirmed<Admin>,
    form: Form<ReasonForm>,
) -> Answer {
    let PersonInPath { owner, page } =
        person_in_path(&request).ok_or_else(ApiError::route_not_found)?;
    let reason = Some(form.0.read_required(&state)?);
    let invitation_request = InvitationRequest {
        owner,
        by: Actor::Operator(session.id),
        reason,
        claim: None,
    };
    let invitation = invitations::make_invitation(&state, &request, invitation_request)
        .await?
        .ok_or_else(ApiError::route_not_found)?;
    show_invitation_link(Frame::for_operator(&session, "The link"), invitation, page)
}

/// POST …/second-factor/reset: removes the second factor of a person who lost it.
async fn reset_second_factor(
    state: web::Data<ApiState>,
    request: HttpRequest,
    Confirmed(Admin(session)): Confirmed<Admin>,
    form: Form<ReasonForm>,
) -> Answer {
    let PersonInPath { owner, page } =
        person_in_path(&request).ok_or_else(ApiError::route_not_found)?;
    let by = Actor::Operator(session.id);
    if by == owner.actor() {
        return Err(ApiError::new(
            ErrorCode::InvalidTransition,
            second_factor::OWN_RESET_REFUSAL,
        ));
    }
    let reason = Some(form.0.read_required(&state)?);
    let removal = FactorRemoval {
        owner,
        by,
        action: AuditAction::ResetSecondFactor,
        reason,
        now: state.now(),
    };
    second_factors::remove(&state.store, removal)
        .await?
        .ok_or_else(ApiError::route_not_found)?;
    Ok(go_to(
        &page,
        "The second factor is removed, and the person is signed out.",
    ))
}
