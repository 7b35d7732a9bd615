//! Signing in and out. Attempts to guess passwords are slowed down by account and by address. The answers do not reveal
//! whether an account exists.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, web};
use askama::Template;
use secrecy::SecretString;
use serde::Deserialize;

use crate::console::frame::Frame;
use crate::console::landing::{home_path, is_own_path};
use crate::console::page::{Answer, Form, PublicForm, redirect, show, show_with_status};
use crate::console::second_factor;
use crate::console::session::{self, Refusal, SignedIn};
use crate::console::session_start::{PasswordProof, start_session};
use crate::domain::access::session::{Person, SessionOwner};
use crate::http::endpoint::{Path, path};
use crate::http::limits::{Attempt, TriedPerson};
use crate::http::listener::Listener;
use crate::http::middleware::client_address::client_address;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::people::{self, SignIn};
use crate::store::accounts::sessions;

const WRONG_PASSWORD_TEXT: &str = "Wrong email or password.";

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/sign-in")
            .page(sign_in_page)
            .form(sign_in)
            .repeatable(),
        path("/sign-out").form(sign_out),
    ]
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    next: String,
    email: String,
    refusal: Option<&'static str>,
    /// True if the person sent a form after the session had ended.
    has_ended: bool,
    sends_mails: bool,
}

#[derive(Deserialize)]
struct Next {
    #[serde(default)]
    next: String,
    #[serde(default)]
    ended: bool,
}

#[derive(Deserialize)]
struct SignInForm {
    email: String,
    password: SecretString,
    #[serde(default)]
    next: String,
}

/// GET /sign-in: shows the form. Redirects a person who is signed in already to the first page.
async fn sign_in_page(
    state: web::Data<ApiState>,
    request: HttpRequest,
    signed_in: Result<SignedIn, Refusal>,
    query: web::Query<Next>,
) -> Answer {
    if let Ok(SignedIn { session, .. }) = signed_in {
        return Ok(redirect(&home_path(session.person.owner)));
    }
    let Next { next, ended } = query.into_inner();
    std::future::ready(show(&SignInPage {
        frame: Frame {
            notice: session::notice(&request),
            ..Frame::for_visitor("Sign in")
        },
        next,
        email: String::new(),
        refusal: None,
        has_ended: ended,
        sends_mails: state.settings.mails.are_sent,
    }))
    .await
}

/// POST /sign-in: opens a session, always a new one.
async fn sign_in(
    state: web::Data<ApiState>,
    request: HttpRequest,
    form: PublicForm<SignInForm>,
) -> Answer {
    let SignInForm {
        email,
        password,
        next,
    } = form.0;
    let Some(account) = find_account(&state, &request, &email, password).await? else {
        let page = SignInPage {
            frame: Frame::for_visitor("Sign in"),
            next,
            email,
            refusal: Some(WRONG_PASSWORD_TEXT),
            has_ended: false,
            sends_mails: state.settings.mails.are_sent,
        };
        return show_with_status(StatusCode::UNAUTHORIZED, &page);
    };
    let person = account.person;
    let proof = PasswordProof {
        owner: person.owner,
        password_hash: account.password_hash,
    };
    let path = if is_own_path(&next) {
        next
    } else {
        home_path(person.owner)
    };
    if person.has_second_factor {
        return second_factor::ask_for_code(&state, &request, &proof, &path).await;
    }
    start_session(&state, &request, &proof, &path).await
}

/// Returns the account with this email and password; `None` if there is none or it is disabled. Computes exactly one
/// password hash, so that the time does not reveal how many accounts have the email.
async fn find_account(
    state: &web::Data<ApiState>,
    request: &HttpRequest,
    email: &str,
    password: SecretString,
) -> Result<Option<SignIn>, ApiError> {
    let now = state.now();
    let listener = Listener::from_request(request);
    let mut found = people::with_email(&state.store, email).await?;
    found.retain(|account| listener.serves_person(account.person.owner));
    let attempt = Attempt {
        tried: TriedPerson::for_password(email),
        device: found
            .iter()
            .find_map(|account| session::known_device(request, state, account.person.owner)),
        address: client_address(request),
    };
    let attempt = state.sign_ins.begin(attempt, now).await?;
    let hashes = found
        .iter()
        .map(|account| account.password_hash.clone())
        .collect();
    if let Some(position) = state.passwords.find_match(password, hashes).await?
        && found
            .get(position)
            .is_some_and(|account| !account.is_disabled)
    {
        state.sign_ins.succeed(attempt, now);
        return Ok(Some(found.swap_remove(position)));
    }
    note_refusals(
        state,
        request,
        found
            .into_iter()
            .map(|account| account.person.owner)
            .collect(),
    );
    Ok(None)
}

/// Returns true if this is the password of this person. Other accounts with the same email do not count.
pub(super) async fn is_own_password(
    state: &web::Data<ApiState>,
    request: &HttpRequest,
    person: &Person,
    password: SecretString,
) -> Result<bool, ApiError> {
    let attempt = Attempt {
        tried: TriedPerson::for_password(&person.email),
        device: session::known_device(request, state, person.owner),
        address: client_address(request),
    };
    let attempt = state.sign_ins.begin(attempt, state.now()).await?;
    let hash = people::password_hash(&state.store, person.owner).await?;
    let is_right = state
        .passwords
        .find_match(password, hash.into_iter().collect())
        .await?
        .is_some();
    if is_right {
        state.sign_ins.succeed(attempt, state.now());
    } else {
        note_refusals(state, request, vec![person.owner]);
    }
    Ok(is_right)
}

/// Records refused passwords in the background. If the answer waited for the commit, its delay would reveal that the
/// account exists.
fn note_refusals(state: &web::Data<ApiState>, request: &HttpRequest, owners: Vec<SessionOwner>) {
    let state = state.clone();
    let address = client_address(request);
    state.traffic.count_failed_authentication();
    actix_web::rt::spawn(async move {
        for owner in owners {
            let noted =
                sessions::record_refused_sign_in(&state.store, owner, address, state.now()).await;
            if let Err(error) = noted {
                tracing::warn!(%error, "failed to record a refused sign-in");
            }
        }
    });
}

#[derive(Deserialize)]
struct NoFields {}

/// POST /sign-out: ends the session.
async fn sign_out(
    state: web::Data<ApiState>,
    request: HttpRequest,
    signed_in: SignedIn,
    _: Form<NoFields>,
) -> Answer {
    if let Some(token) = session::token(&request) {
        sessions::close(
            &state.store,
            &token,
            signed_in.session.person.owner,
            state.now(),
        )
        .await?;
    }
    let mut answer = redirect("/sign-in");
    answer
        .add_cookie(&session::removal_cookie(state.settings.sessions))
        .map_err(ApiError::internal)?;
    Ok(answer)
}
