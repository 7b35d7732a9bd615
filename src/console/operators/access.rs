//! The list of integrators, and the forms that take away the access of an operator or an integrator, give it back, or
//! change an operator's role. They do the same as the command line and the API under `/ops`.

use actix_web::web;
use askama::Template;
use serde::Deserialize;

use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::ReasonForm;
use crate::console::operators::sign_ins::{PersonLine, person_path};
use crate::console::page::{Answer, Form, go_to};
use crate::console::session::Confirmed;
use crate::console::session::operators::{Admin, OperatorSession, Viewer};
use crate::domain::access::api_key::{AccountWithKeys, KeyOwner};
use crate::domain::access::caller::KeyKind;
use crate::domain::access::session::{OperatorRole, SessionOwner};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::{IntegratorId, parse_id};
use crate::http::api::ops::access::ended_keys_and_sessions;
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::access::{self, AccessChangeOutcome};
use crate::store::accounts::second_factors::{self, FactorState};
use crate::store::accounts::{self, AccountChange, RevokedCounts};

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/integrators").page(list_integrators),
        path("/console/integrators/{id}/access").form(change_integrator),
        path("/console/operators/{id}/access").form(change_operator),
        path("/console/operators/{id}/role").form(set_role),
    ]
}

words! {
    /// The change that a form makes to the access of an account.
    AccessMove { Revoke = "revoke", Disable = "disable", Enable = "enable", Remove = "remove" }
}

#[derive(Template)]
#[template(path = "operators/integrators.html")]
struct IntegratorsPage {
    frame: Frame,
    rows: Vec<IntegratorLine>,
    pages: PagePosition,
}

struct IntegratorLine {
    holder: AccountWithKeys,
    person: PersonLine,
}

/// GET /console/integrators: lists the integrators.
async fn list_integrators(
    state: web::Data<ApiState>,
    Viewer(session): Viewer,
    query: Query,
) -> Answer {
    let list = ListQuery::new(&query);
    let (found, total) =
        accounts::load_account_page(&state.store, KeyKind::Integrator, list.page()).await?;
    let owners = found.iter().map(session_owner);
    let factors = second_factors::load_states(&state.store, owners, state.now()).await?;
    let rows = found.into_iter().map(|holder| {
        let owner = session_owner(&holder);
        let person = PersonLine {
            name: holder.name.clone(),
            email: holder.email.clone(),
            role: "integrator",
            second_factor: factors.get(owner),
            path: person_path(owner),
            is_self: false,
        };
        IntegratorLine { holder, person }
    });
    let page = IntegratorsPage {
        frame: Frame::for_operator(&session, "Integrators"),
        rows: rows.collect(),
        pages: list.pages("/console/integrators", total),
    };
    show_list(&page.pages, &page)
}

#[derive(Debug, Deserialize)]
struct AccessForm {
    #[serde(rename = "move")]
    access_move: AccessMove,
    #[serde(default)]
    reason: String,
    /// Present if the checkbox is ticked that also revokes the keys of the integrator's taxpayers.
    #[serde(default)]
    taxpayer_keys: Option<String>,
}

/// POST /console/integrators/{id}/access: revokes, disables or enables an integrator.
async fn change_integrator(
    state: web::Data<ApiState>,
    Confirmed(Admin(session)): Confirmed<Admin>,
    id: web::Path<String>,
    form: Form<AccessForm>,
) -> Answer {
    change_access(
        &state,
        &session,
        parse_owner(KeyKind::Integrator, &id)?,
        form.0,
    )
    .await
}

/// POST /console/operators/{id}/access: revokes, disables, enables or removes an operator.
async fn change_operator(
    state: web::Data<ApiState>,
    Confirmed(Admin(session)): Confirmed<Admin>,
    id: web::Path<String>,
    form: Form<AccessForm>,
) -> Answer {
    change_access(
        &state,
        &session,
        parse_owner(KeyKind::Operator, &id)?,
        form.0,
    )
    .await
}

async fn change_access(
    state: &ApiState,
    session: &OperatorSession,
    owner: KeyOwner,
    form: AccessForm,
) -> Answer {
    let AccessForm {
        access_move,
        reason,
        taxpayer_keys,
    } = form;
    let reason = ReasonForm { reason }.read_required(state)?;
    let change = account_change(state, session, owner, reason);
    let includes_taxpayers = taxpayer_keys.is_some();
    let store = &state.store;
    let outcome = match (access_move, owner.kind) {
        (AccessMove::Revoke, _) => {
            let revoked = access::revoke_account_access(store, change, includes_taxpayers).await?;
            revoked.map_or(AccessChangeOutcome::Unknown, AccessChangeOutcome::Done)
        }
        (AccessMove::Disable, _) => {
            access::disable_account(store, change, includes_taxpayers).await?
        }
        (AccessMove::Enable, _) => access::enable_account(store, change).await?,
        (AccessMove::Remove, KeyKind::Operator) => access::remove_operator(store, change).await?,
        (AccessMove::Remove, _) => return Err(ApiError::route_not_found()),
    };
    let RevokedCounts {
        revoked,
        revoked_of_taxpayers,
        sessions,
    } = ended_keys_and_sessions(outcome, owner)?;
    let keys = revoked + revoked_of_taxpayers;
    let is_change = outcome != AccessChangeOutcome::AlreadySo;
    let notice = match access_move {
        AccessMove::Disable if !is_change => "The account was already disabled.".to_owned(),
        AccessMove::Enable if !is_change => "The account was not disabled.".to_owned(),
        AccessMove::Revoke => format!("{}.", ended_access_words(keys, sessions)),
        AccessMove::Disable => {
            format!(
                "The account is disabled: {}.",
                ended_access_words(keys, sessions)
            )
        }
        AccessMove::Enable => "The account is enabled. It can sign in; it has no key.".to_owned(),
        AccessMove::Remove => "The operator is removed.".to_owned(),
    };
    Ok(go_to(list_path(owner.kind), &notice))
}

/// Says how many keys were revoked and how many sessions ended.
fn ended_access_words(keys: u64, sessions: u64) -> String {
    let sessions = session_words(sessions);
    match keys {
        1 => format!("1 key is revoked and {sessions} ended"),
        keys => format!("{keys} keys are revoked and {sessions} ended"),
    }
}

pub(super) fn session_words(sessions: u64) -> String {
    match sessions {
        1 => "1 session".to_owned(),
        sessions => format!("{sessions} sessions"),
    }
}

#[derive(Debug, Deserialize)]
struct RoleForm {
    role: OperatorRole,
    #[serde(default)]
    reason: String,
}

/// POST /console/operators/{id}/role: gives an operator another role.
async fn set_role(
    state: web::Data<ApiState>,
    Confirmed(Admin(session)): Confirmed<Admin>,
    id: web::Path<String>,
    form: Form<RoleForm>,
) -> Answer {
    let owner = parse_owner(KeyKind::Operator, &id)?;
    let RoleForm { role, reason } = form.0;
    let reason = ReasonForm { reason }.read_required(&state)?;
    let change = account_change(&state, &session, owner, reason);
    let outcome = access::set_operator_role(&state.store, change, role).await?;
    ended_keys_and_sessions(outcome, owner)?;
    let notice = match outcome {
        AccessChangeOutcome::AlreadySo => "The operator already had this role.",
        _ => "The role is changed. It counts from the next request on.",
    };
    Ok(go_to(list_path(owner.kind), notice))
}

/// Returns a change of an account that this operator makes.
pub(super) fn account_change(
    state: &ApiState,
    session: &OperatorSession,
    owner: KeyOwner,
    reason: String,
) -> AccountChange {
    AccountChange {
        owner,
        by: Actor::Operator(session.id),
        reason: Some(reason),
        address: session.address,
        now: state.now(),
    }
}

fn session_owner(integrator: &AccountWithKeys) -> SessionOwner {
    SessionOwner::Integrator(IntegratorId(integrator.id))
}

fn parse_owner(kind: KeyKind, text: &str) -> Result<KeyOwner, ApiError> {
    parse_id(text)
        .map(|id| KeyOwner { kind, id })
        .ok_or_else(ApiError::route_not_found)
}

fn list_path(kind: KeyKind) -> &'static str {
    if kind == KeyKind::Operator {
        "/console/operators"
    } else {
        "/console/integrators"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_and_one_session_are_written_in_the_singular() {
        for (keys, sessions, words) in [
            (0, 0, "0 keys are revoked and 0 sessions ended"),
            (1, 1, "1 key is revoked and 1 session ended"),
            (2, 3, "2 keys are revoked and 3 sessions ended"),
        ] {
            assert_eq!(ended_access_words(keys, sessions), words);
        }
    }
}
