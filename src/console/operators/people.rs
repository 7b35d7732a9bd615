//! The operators of the service, with their roles and second factors. An admin resets a second factor that was lost.

use actix_web::web;
use askama::Template;

use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::ReasonForm;
use crate::console::page::{Answer, Form, Pages, go_to, show};
use crate::console::session::operators::{Admin, Viewer};
use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::{OperatorRole, Person, Rights};
use crate::domain::kernel::audit::{Actor, AuditAction};
use crate::domain::kernel::ids::parse_number;
use crate::http::endpoint::{Path, path};
use crate::http::forms::query::Query;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts;
use crate::store::accounts::people;
use crate::store::accounts::second_factors::{self, Removal};

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/console/operators").page(list),
        path("/console/operators/{id}/second-factor/reset").form(reset_second_factor),
    ]
}

#[derive(Template)]
#[template(path = "operators/people.html")]
struct PeoplePage {
    frame: Frame,
    rows: Vec<OperatorLine>,
    roles: Vec<&'static str>,
    pages: Pages,
}

struct OperatorLine {
    id: i64,
    email: String,
    role: &'static str,
    is_disabled: bool,
    has_second_factor: bool,
}

/// GET /console/operators: lists the operators.
async fn list(state: web::Data<ApiState>, Viewer(session): Viewer, query: Query) -> Answer {
    let list = ListQuery::new(&query);
    let (found, total) = people::operators(&state.store, list.page()).await?;
    let (holders, _) = accounts::page(&state.store, KeyKind::Operator, list.page()).await?;
    let is_disabled = |id| holders.iter().any(|holder| holder.id == id && holder.disabled_at.is_some());
    show(&PeoplePage {
        frame: Frame::operator(&session, "Operators"),
        rows: found.into_iter().map(|person| line(person, &is_disabled)).collect(),
        roles: OperatorRole::ALL.iter().map(|role| role.as_str()).collect(),
        pages: list.pages("/console/operators", total),
    })
}

fn line(person: Person, is_disabled: &impl Fn(i64) -> bool) -> OperatorLine {
    let id = person.owner.id();
    OperatorLine {
        id,
        role: match person.rights {
            Rights::Operate(role) => role.as_str(),
            Rights::Account(role) => role.as_str(),
        },
        is_disabled: is_disabled(id),
        has_second_factor: person.has_second_factor,
        email: person.email,
    }
}

/// POST /console/operators/{id}/second-factor/reset: removes the second factor of an operator who lost it.
async fn reset_second_factor(
    state: web::Data<ApiState>,
    Admin(session): Admin,
    id: web::Path<String>,
    form: Form<ReasonForm>,
) -> Answer {
    let operator = parse_number(&id).ok_or_else(ApiError::route_not_found)?;
    let removal = Removal {
        operator,
        by: Actor::Operator(session.id),
        action: AuditAction::ResetSecondFactor,
        reason: Some(form.0.read_required(&state)?),
        now: state.now(),
    };
    second_factors::remove(&state.store, removal).await?.ok_or_else(ApiError::route_not_found)?;
    let notice = "The second factor is removed, and the operator's sessions are ended.";
    Ok(go_to("/console/operators", notice))
}
