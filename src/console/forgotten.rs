//! The page for people who forgot their password. If the typed email belongs to a person of this service, a mail with a
//! one-time link is sent to it. Answer and response time do not reveal whether it does: the email is looked up only
//! when the mail is written.

use actix_web::{HttpRequest, web};
use askama::Template;
use serde::Deserialize;

use crate::console::frame::Frame;
use crate::console::page::{Answer, PublicForm, go_to, show};
use crate::domain::notice::{Notice, NoticeKind, NoticeScope};
use crate::http::limits;
use crate::http::middleware::client_address::client_address;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::notices;

/// The longest email that is accepted, in bytes.
const EMAIL_BYTES_MAX: usize = 1_024;

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/sign-in/forgotten")
            .page(show_form)
            .form(ask_for_link)
            .allows_form_repeat(),
    ]
}

#[derive(Template)]
#[template(path = "forgotten.html")]
struct ForgottenPage {
    frame: Frame,
}

#[derive(Deserialize)]
struct ForgottenForm {
    email: String,
}

/// GET /sign-in/forgotten: asks for the email. Answers 404 if this deployment sends no mails.
async fn show_form(state: web::Data<ApiState>) -> Answer {
    let checked = check_mails_are_sent(&state);
    std::future::ready(checked.and_then(|()| {
        show(&ForgottenPage {
            frame: Frame::for_visitor("Forgotten password"),
        })
    }))
    .await
}

fn check_mails_are_sent(state: &ApiState) -> Result<(), ApiError> {
    if state.settings.mails.are_sent {
        Ok(())
    } else {
        Err(ApiError::route_not_found())
    }
}

/// True if the text may be an email. Any other text gets the same answer, but is not stored.
fn is_email(text: &str) -> bool {
    text.contains('@') && text.len() <= EMAIL_BYTES_MAX && !text.chars().any(char::is_control)
}

/// POST /sign-in/forgotten: stores the request for a link.
async fn ask_for_link(
    state: web::Data<ApiState>,
    request: HttpRequest,
    form: PublicForm<ForgottenForm>,
) -> Answer {
    check_mails_are_sent(&state)?;
    let quota = state
        .limits
        .count_forgotten_password(client_address(&request), state.now());
    quota.map_err(limits::limit_error)?;
    let email = form.0.email.trim();
    if is_email(email) {
        let notice = Notice::new(NoticeScope::SignIn, NoticeKind::PasswordLost, state.now());
        let about = email.to_owned();
        let tx = state.store.begin().await?;
        notices::add(&tx, &[Notice { about, ..notice }]).await?;
        tx.commit().await?;
    }
    Ok(go_to(
        "/sign-in",
        "If this address can sign in here, a mail with a link is on its way.",
    ))
}
