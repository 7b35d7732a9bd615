//! The page "Confirm that it is you". People enter password and code again before they change who has access. So
//! somebody who finds an open session, or steals its cookie, cannot create API keys, add people or set up a second
//! factor.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use secrecy::SecretString;
use serde::Deserialize;

use crate::console::frame::Frame;
use crate::console::landing::{home_path, is_page_path};
use crate::console::page::{Answer, Form, redirect, show_with_status};
use crate::console::second_factor;
use crate::console::session::{self, SignedIn};
use crate::console::sign_in::is_password_right;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;
use crate::store::accounts::sessions;

const REFUSAL_TEXT: &str =
    "This is not right. A code counts once: wait for the next one of the app.";

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/account/confirm")
            .page(show_password_form)
            .form(confirm_password)
            .allows_form_repeat(),
    ]
}

#[derive(Template)]
#[template(path = "confirm.html")]
struct PasswordConfirmationPage {
    frame: Frame,
    next: String,
    needs_code: bool,
    refusal: Option<&'static str>,
}

#[derive(Deserialize)]
struct ConfirmQuery {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
struct PasswordConfirmationForm {
    current: SecretString,
    #[serde(default)]
    code: SecretString,
    #[serde(default)]
    next: String,
}

/// GET /account/confirm: asks for the password, and for the code if the person has a second factor.
async fn show_password_form(signed_in: SignedIn, query: web::Query<ConfirmQuery>) -> Answer {
    std::future::ready(render(&signed_in, query.into_inner().next, None)).await
}

fn render(signed_in: &SignedIn, next: String, refusal: Option<&'static str>) -> Answer {
    let person = &signed_in.session.person;
    let status = if refusal.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = PasswordConfirmationPage {
        frame: Frame::for_person(person, &signed_in.csrf, "Confirm that it is you"),
        next,
        needs_code: person.has_second_factor,
        refusal,
    };
    show_with_status(status, &page)
}

/// POST /account/confirm: allows the session for some minutes to change people and keys, and redirects to the page that
/// required it.
async fn confirm_password(
    state: web::Data<ApiState>,
    request: HttpRequest,
    signed_in: SignedIn,
    form: Form<PasswordConfirmationForm>,
) -> Answer {
    let PasswordConfirmationForm {
        current,
        code,
        next,
    } = form.0;
    let person = &signed_in.session.person;
    let is_right = is_password_right(&state, &request, person, current).await?
        && (!person.has_second_factor
            || second_factor::accept_code(&state, &request, person.owner, &code).await?);
    if !is_right {
        return render(&signed_in, next, Some(REFUSAL_TEXT));
    }
    if let Some(token) = session::session_token(&request) {
        sessions::record_identity_confirmation(&state.store, &token, state.now()).await?;
    }
    let next = if is_page_path(&next) {
        next
    } else {
        home_path(person.owner)
    };
    Ok(redirect(&next))
}
