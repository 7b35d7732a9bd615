//! Invitations: the page on which a person chooses a password with a one-time link, and the page that shows a new link
//! to the person who created it. A link opens no session: the invited person signs in afterwards, with the second
//! factor if there is one.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::console::filters;
use crate::console::frame::Frame;
use crate::console::page::{Answer, PublicForm, go_to, show, show_with_status};
use crate::domain::access::invitation::InvitationToken;
use crate::domain::access::password;
use crate::domain::access::session::Person;
use crate::http::invitations::Invitation;
use crate::http::limits::{Attempt, TriedPerson};
use crate::http::listener::Listener;
use crate::http::middleware::client_address::client_address;
use crate::http::paths::{Path, path};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::{invitations, people};

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/sign-in/invitation/{token}")
            .page(show_choose_password)
            .form(choose_password)
            .allows_form_repeat(),
    ]
}

#[derive(Template)]
#[template(path = "choose_password.html")]
struct ChoosePasswordPage {
    frame: Frame,
    email: String,
    refusal: Option<String>,
}

/// The page that says that the link is no longer valid. It does not say for whom the link was.
#[derive(Template)]
#[template(path = "invitation_ended.html")]
struct InvitationEndedPage {
    frame: Frame,
}

#[derive(Deserialize)]
struct ChosenPassword {
    new: SecretString,
    again: SecretString,
}

/// GET /sign-in/invitation/{token}: asks the person for a password. Opening the page does not use up the link, because
/// some mail programs open each link that they see.
async fn show_choose_password(
    state: web::Data<ApiState>,
    request: HttpRequest,
    token: web::Path<String>,
) -> Answer {
    let token = InvitationToken::from_url_segment(token.into_inner());
    match find_invited_person(&state, &request, &token).await? {
        Some(person) => render(person.email, None),
        None => show_ended_page(),
    }
}

/// POST /sign-in/invitation/{token}: sets the chosen password, and ends the link and all sessions of the person.
async fn choose_password(
    state: web::Data<ApiState>,
    request: HttpRequest,
    token: web::Path<String>,
    form: PublicForm<ChosenPassword>,
) -> Answer {
    let token = InvitationToken::from_url_segment(token.into_inner());
    // The link is looked up before the password is hashed, which is expensive.
    let Some(person) = find_invited_person(&state, &request, &token).await? else {
        return show_ended_page();
    };
    if let Some(refusal) = password_refusal(&form.0) {
        return render(person.email, Some(refusal));
    }
    let salt = people::find_password_hash_by_email(&state.store, &person.email).await?;
    let hash = state.passwords.hash(form.0.new, salt).await?;
    match invitations::accept(&state.store, &token, &hash, state.now()).await? {
        Some(_) => Ok(go_to("/sign-in", "Your password is set. Sign in with it.")),
        None => show_ended_page(),
    }
}

/// Returns the person whom the link invites; `None` if the link is not valid. An invalid link counts as a refused
/// attempt to sign in.
async fn find_invited_person(
    state: &ApiState,
    request: &HttpRequest,
    token: &InvitationToken,
) -> Result<Option<Person>, ApiError> {
    let now = state.now();
    let attempt = Attempt {
        person: TriedPerson::for_password(&token.hash()),
        device: None,
        address: client_address(request),
    };
    let attempt = state.sign_ins.begin_attempt(attempt, now).await?;
    let listener = Listener::from_request(request);
    let found = invitations::find(&state.store, token, now).await?;
    let found = found.filter(|person| listener.serves_person(person.owner));
    if found.is_some() {
        state.sign_ins.uncount_success(attempt, now);
    }
    Ok(found)
}

fn password_refusal(form: &ChosenPassword) -> Option<String> {
    let new = form.new.expose_secret();
    if new != form.again.expose_secret() {
        return Some("The two passwords are not the same.".to_owned());
    }
    password::check(new).err().map(|fault| fault.to_string())
}

fn render(email: String, refusal: Option<String>) -> Answer {
    let status = if refusal.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    show_with_status(
        status,
        &ChoosePasswordPage {
            frame: Frame::for_visitor("Choose your password"),
            email,
            refusal,
        },
    )
}

fn show_ended_page() -> Answer {
    show_with_status(
        StatusCode::NOT_FOUND,
        &InvitationEndedPage {
            frame: Frame::for_visitor("This link is not valid"),
        },
    )
}

/// The only page that shows a new link.
#[derive(Template)]
#[template(path = "invitation.html")]
struct InvitationPage {
    frame: Frame,
    email: String,
    link: String,
    expires_at: Timestamp,
    back: String,
}

/// Shows a new link to the person who created it. `back` is the address of the page that the person came from.
pub(super) fn show_invitation_link(frame: Frame, invitation: Invitation, back: String) -> Answer {
    let Invitation {
        email,
        link,
        expires_at,
        ..
    } = invitation;
    show(&InvitationPage {
        frame,
        email,
        link,
        expires_at,
        back,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_password_is_typed_twice_and_not_a_common_one() {
        for (new, again, refused) in [
            ("a few easy words", "a few easy words", None),
            ("a few easy words", "a few easy word", Some("not the same")),
            ("eleven char", "eleven char", Some("12 characters")),
            (
                "password1234",
                "password1234",
                Some("everybody tries first"),
            ),
        ] {
            let refusal = password_refusal(&ChosenPassword {
                new: new.into(),
                again: again.into(),
            });
            assert_eq!(refusal.is_some(), refused.is_some(), "{new}");
            assert!(
                refusal
                    .unwrap_or_default()
                    .contains(refused.unwrap_or_default()),
                "{new}"
            );
        }
    }
}
