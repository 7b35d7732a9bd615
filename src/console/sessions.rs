//! The list of the sessions of a person, with forms that end one of the other sessions or all of them.

use actix_web::{HttpRequest, web};
use askama::Template;
use serde::Deserialize;

use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, go_to, show};
use crate::console::session::{self, SignedIn};
use crate::domain::access::session::OpenSession;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;
use crate::store::accounts::sessions;

const PATH: &str = "/account/sessions";

pub(super) fn paths() -> Vec<Path> {
    vec![
        path(PATH).page(list_sessions),
        path("/account/sessions/end").form(end_sessions),
    ]
}

#[derive(Template)]
#[template(path = "sessions.html")]
struct SessionsPage {
    frame: Frame,
    rows: Vec<OpenSession>,
}

/// GET /account/sessions: lists the sessions of the person who is signed in.
async fn list_sessions(
    state: web::Data<ApiState>,
    request: HttpRequest,
    signed_in: SignedIn,
) -> Answer {
    let person = &signed_in.session.person;
    let own_token = session::session_token(&request).unwrap_or_default();
    let limits = state.settings.sessions.limits;
    let rows =
        sessions::owned_by(&state.store, person.owner, &own_token, limits, state.now()).await?;
    let notice = session::notice(&request);
    let frame = Frame {
        notice,
        ..Frame::for_person(person, &signed_in.csrf, "Where you are signed in")
    };
    show(&SessionsPage { frame, rows })
}

#[derive(Deserialize)]
struct EndSessionForm {
    /// The id of the session to end; blank for all other sessions.
    #[serde(default)]
    id: String,
}

/// POST /account/sessions/end: ends one other session, or all others.
async fn end_sessions(
    state: web::Data<ApiState>,
    request: HttpRequest,
    signed_in: SignedIn,
    form: Form<EndSessionForm>,
) -> Answer {
    let own_token = session::session_token(&request).unwrap_or_default();
    let id = Some(form.0.id.as_str()).filter(|id| !id.is_empty());
    let owner = signed_in.session.person.owner;
    let ended = sessions::close_others(&state.store, owner, &own_token, id, state.now()).await?;
    let notice = match ended {
        0 => "No other session was open.".to_owned(),
        1 => "One session is ended.".to_owned(),
        ended => format!("{ended} sessions are ended."),
    };
    Ok(go_to(PATH, &notice))
}
