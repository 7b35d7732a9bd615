//! The API keys of all accounts: whose they are, when and from where they were last used, and the form that revokes
//! one.

use actix_web::web;
use askama::Template;
use jiff::Timestamp;

use crate::actors::taxpayer::commands::RevokeKey;
use crate::console::badges::Badge;
use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::list_pages::{PagePosition, show_list};
use crate::console::operators::access::{account_change, session_words};
use crate::console::operators::list_query::ListQuery;
use crate::console::operators::reason::ReasonForm;
use crate::console::page::{Answer, Form, go_to};
use crate::console::session::Confirmed;
use crate::console::session::operators::{Admin, Viewer};
use crate::domain::access::api_key::{KeyOwner, KeyScope};
use crate::domain::access::caller::KeyKind;
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::{TaxpayerId, parse_id};
use crate::http::forms::query::Query;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::access;
use crate::store::accounts::key_list::{self, KeyFilter, ListedKey};

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/console/keys").page(list_keys),
        path("/console/keys/{kind}/{owner}/{key}/revoke").form(revoke),
    ]
}

#[derive(Template)]
#[template(path = "operators/keys.html")]
struct KeysPage {
    frame: Frame,
    list: ListQuery,
    rows: Vec<KeyLine>,
    pages: PagePosition,
}

struct KeyLine {
    listed: ListedKey,
    badge: Badge,
    scope: &'static str,
    /// The page of the account.
    owner_page: String,
    is_valid: bool,
}

/// GET /console/keys: lists the keys that match, newest first.
async fn list_keys(state: web::Data<ApiState>, Viewer(session): Viewer, query: Query) -> Answer {
    let list = ListQuery::new(&query);
    let filter = KeyFilter {
        kind: list
            .0
            .word("kind", KeyKind::parse, KeyKind::allowed_words)?,
        owner_id: list
            .0
            .trimmed_text("owner")
            .map(|text| parse_id(&text).unwrap_or(0)),
        last_four: list.0.trimmed_text("last_four"),
        last_used_from: list.0.trimmed_text("address"),
    };
    let now = state.now();
    let (found, total) = key_list::page(&state.store, filter, list.page()).await?;
    let page = KeysPage {
        frame: Frame::for_operator(&session, "Keys"),
        pages: list.pages("/console/keys", total),
        rows: found
            .into_iter()
            .map(|listed| KeyLine::new(listed, now))
            .collect(),
        list,
    };
    show_list(&page.pages, &page)
}

/// POST /console/keys/{kind}/{owner}/{key}/revoke: ends one key at once. The sessions of an operator or an integrator
/// end, too, because a thief of the key may also have the password.
async fn revoke(
    state: web::Data<ApiState>,
    Confirmed(Admin(session)): Confirmed<Admin>,
    names: web::Path<(String, String, String)>,
    form: Form<ReasonForm>,
) -> Answer {
    let (kind, owner, key) = names.into_inner();
    let kind = KeyKind::parse(&kind).ok_or_else(ApiError::route_not_found)?;
    let id = parse_id(&owner).ok_or_else(ApiError::route_not_found)?;
    let owner = KeyOwner { kind, id };
    let reason = form.0.read_required(&state)?;
    let found = key_list::find_owned_by_id(&state.store, owner, &key).await?;
    let key = found.ok_or_else(ApiError::route_not_found)?;
    let notice = if kind == KeyKind::Taxpayer {
        let command = RevokeKey {
            id: key.id,
            by: Actor::Operator(session.id),
            reason: Some(reason),
        };
        state.taxpayers.send(TaxpayerId(id), command).await?;
        "The key is revoked. It is refused from now on.".to_owned()
    } else {
        let change = account_change(&state, &session, owner, reason);
        let ended = access::revoke_key(&state.store, change, &key.id).await?;
        let ended = ended.ok_or_else(ApiError::route_not_found)?;
        let sessions = session_words(ended.sessions);
        format!("The key is revoked. It is refused from now on, and {sessions} ended.")
    };
    Ok(go_to(
        &format!("/console/keys?kind={kind}&owner={id}"),
        &notice,
    ))
}

impl KeyLine {
    fn new(listed: ListedKey, now: Timestamp) -> Self {
        let key = &listed.key;
        let (class, text) = match key.expires_at {
            None => ("ok", "Valid"),
            Some(end) if end > now => ("wait", "Valid until it expires"),
            Some(_) => ("idle", "Expired"),
        };
        let id = listed.owner.id;
        Self {
            badge: Badge { class, text },
            scope: match key.scope {
                KeyScope::Full => "Everything",
                KeyScope::ReadOnly => "Read-only",
            },
            is_valid: key.is_valid(now),
            owner_page: match listed.owner.kind {
                KeyKind::Taxpayer => format!("/console/taxpayers/{id}"),
                KeyKind::Integrator => "/console/integrators".to_owned(),
                KeyKind::Operator => "/console/operators".to_owned(),
            },
            listed,
        }
    }
}
