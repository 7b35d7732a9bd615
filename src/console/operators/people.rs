//! The operators of the service, with their roles and second factors.

use actix_web::web;
use askama::Template;

use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::sign_ins::{PersonLine, person_path};
use crate::console::page::Answer;
use crate::console::session::operators::Viewer;
use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::{OperatorRole, Rights};
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;
use crate::store::accounts::second_factors::{self, FactorState};
use crate::store::accounts::{self, people};

pub(super) fn paths() -> Vec<Path> {
    vec![path("/console/operators").page(list_operators)]
}

#[derive(Template)]
#[template(path = "operators/people.html")]
struct PeoplePage {
    frame: Frame,
    rows: Vec<OperatorLine>,
    roles: Vec<&'static str>,
    pages: PagePosition,
}

struct OperatorLine {
    id: i64,
    is_disabled: bool,
    person: PersonLine,
}

/// GET /console/operators: lists the operators.
async fn list_operators(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let (found, total) = people::load_operators_page(&state.store, list.page()).await?;
    let owners = found.iter().map(|person| person.owner);
    let factors = second_factors::load_states(&state.store, owners, state.now()).await?;
    let (holders, _) =
        accounts::load_account_page(&state.store, KeyKind::Operator, list.page()).await?;
    let rows = found.into_iter().map(|person| {
        let id = person.owner.id();
        let is_disabled = holders
            .iter()
            .any(|holder| holder.id == id && holder.disabled_at.is_some());
        let role = match person.rights {
            Rights::Operate(role) => role.as_str(),
            Rights::Account(role) => role.as_str(),
        };
        let person = PersonLine {
            role,
            name: person.name,
            email: person.email,
            second_factor: factors.get(person.owner),
            path: person_path(person.owner),
            is_self: id == session.id,
        };
        OperatorLine {
            id,
            is_disabled,
            person,
        }
    });
    let page = PeoplePage {
        frame: Frame::for_operator(&session, "Operators"),
        rows: rows.collect(),
        roles: OperatorRole::ALL.iter().map(|role| role.as_str()).collect(),
        pages: list.pages("/console/operators", total),
    };
    show_list(&page.pages, &page)
}
