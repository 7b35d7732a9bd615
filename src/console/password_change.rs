//! The page on which a person changes the password. A change ends all sessions of the person, and the invitations and
//! links to deliveries that the person made, and opens a new session.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::console::frame::Frame;
use crate::console::landing::home_path;
use crate::console::page::{Answer, Form, add_notice, redirect, show_with_status};
use crate::console::session::SignedIn;
use crate::console::session_start::{PasswordProof, start_session};
use crate::console::sign_in::is_password_right;
use crate::domain::access::password;
use crate::http::paths::{Path, path};
use crate::http::state::ApiState;
use crate::store::accounts::people::{self, PasswordChange};

pub(super) fn paths() -> Vec<Path> {
    vec![
        path("/account/password")
            .page(password_page)
            .form(change_password),
    ]
}

#[derive(Template)]
#[template(path = "password.html")]
struct PasswordPage {
    frame: Frame,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct PasswordForm {
    current: SecretString,
    new: SecretString,
    again: SecretString,
}

/// GET /account/password: shows the form.
async fn password_page(signed_in: SignedIn) -> Answer {
    std::future::ready(render_password_page(&signed_in, None)).await
}

fn render_password_page(signed_in: &SignedIn, refusal: Option<String>) -> Answer {
    let person = &signed_in.session.person;
    let status = if refusal.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = PasswordPage {
        frame: Frame::for_person(person, &signed_in.csrf, "Change your password"),
        refusal,
    };
    show_with_status(status, &page)
}

/// POST /account/password: changes the password, ends all sessions of the person, and opens a new one.
async fn change_password(
    state: web::Data<ApiState>,
    request: HttpRequest,
    signed_in: SignedIn,
    form: Form<PasswordForm>,
) -> Answer {
    let PasswordForm {
        current,
        new,
        again,
    } = &form.0;
    let person = &signed_in.session.person;
    if let Some(refusal) = password_refusal(current, new, again) {
        return render_password_page(&signed_in, Some(refusal));
    }
    let current_hash = people::password_hash(&state.store, person.owner).await?;
    if !is_password_right(&state, &request, person, current.clone()).await? {
        return render_password_page(
            &signed_in,
            Some("The current password is not right.".to_owned()),
        );
    }
    let salt = people::find_password_hash_by_email(&state.store, &person.email).await?;
    let hash = state.passwords.hash(new.clone(), salt).await?;
    let change = PasswordChange {
        owner: person.owner,
        hash: &hash,
        replaces: current_hash.as_deref(),
        by: person.owner.actor(),
    };
    if people::set_password(&state.store, change, state.now())
        .await?
        .is_none()
    {
        return Ok(redirect("/sign-in"));
    }
    let proof = PasswordProof {
        owner: person.owner,
        password_hash: hash,
        has_code: person.has_second_factor,
    };
    let mut answer = start_session(&state, &request, &proof, &home_path(person.owner)).await?;
    let notice = "Your password is changed. You are signed out everywhere else.";
    add_notice(&mut answer, notice);
    Ok(answer)
}

/// Returns the reason why a new password is refused; `None` if it is accepted.
fn password_refusal(
    current: &SecretString,
    new: &SecretString,
    again: &SecretString,
) -> Option<String> {
    let [current, new, again] = [current, new, again].map(ExposeSecret::expose_secret);
    if let Err(fault) = password::check(new) {
        Some(fault.to_string())
    } else if new != again {
        Some("The two new passwords are not the same.".to_owned())
    } else if new == current {
        Some("The new password is the current one. Choose another.".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_password_is_long_enough_and_new() {
        let check = |current: &str, new: &str, again: &str| {
            password_refusal(&current.into(), &new.into(), &again.into()).is_none()
        };
        assert!(check(
            "the first password",
            "a few easy words",
            "a few easy words"
        ));
        assert!(!check("the first password", "eleven char", "eleven char"));
        assert!(!check(
            "the first password",
            "a few easy words",
            "a few easy word"
        ));
        assert!(!check(
            "the first password",
            "the first password",
            "the first password"
        ));
        assert!(!check(
            "the first password",
            &"x".repeat(129),
            &"x".repeat(129)
        ));
        assert!(!check("the first password", "password1234", "password1234"));
    }
}
