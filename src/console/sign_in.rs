//! Signing in and out, and the change of a password. Somebody who tries passwords is slowed down by account and by
//! address, and is not told whether an account exists.

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngExt;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use crate::console::frame::Frame;
use crate::console::page::{Answer, Form, PublicForm, go_to, redirect, show, show_with_status};
use crate::console::second_factor;
use crate::console::session::{self, Refusal, SignedIn};
use crate::domain::access::password;
use crate::domain::access::session::{Person, SessionOwner, SignInPlace};
use crate::domain::kernel::clock;
use crate::http::endpoint::{Path, path};
use crate::http::limits::{Attempt, TriedPerson};
use crate::http::listener::Listener;
use crate::http::middleware::client_address::client_address;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::people::{self, PasswordChange, SignIn};
use crate::store::accounts::sessions::{self, NewSession};

const WRONG_PASSWORD_TEXT: &str = "This email and password do not belong together.";

pub(super) fn endpoints() -> Vec<Path> {
    vec![
        path("/sign-in").page(sign_in_page).form(sign_in).repeatable(),
        path("/sign-out").form(sign_out),
        path("/account/password").page(password_page).form(change_password),
        path("/dashboard").page(go_home),
    ]
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    frame: Frame,
    next: String,
    email: String,
    refusal: Option<&'static str>,
}

#[derive(Deserialize)]
struct Next {
    #[serde(default)]
    next: String,
}

#[derive(Deserialize)]
struct SignInForm {
    email: String,
    password: SecretString,
    #[serde(default)]
    next: String,
}

/// GET /sign-in: shows the form; leads a person who is signed in to the first page.
async fn sign_in_page(
    request: HttpRequest,
    signed_in: Result<SignedIn, Refusal>,
    query: web::Query<Next>,
) -> Answer {
    if let Ok(SignedIn { session, .. }) = signed_in {
        return Ok(redirect(&home_path(session.person.owner)));
    }
    let next = query.into_inner().next;
    std::future::ready(show(&SignInPage {
        frame: Frame { notice: session::notice(&request), ..Frame::for_visitor("Sign in") },
        next,
        email: String::new(),
        refusal: None,
    }))
    .await
}

/// POST /sign-in: opens a session, always a new one.
async fn sign_in(state: web::Data<ApiState>, request: HttpRequest, form: PublicForm<SignInForm>) -> Answer {
    let SignInForm { email, password, next } = form.0;
    let Some(account) = find_account(&state, &request, &email, password).await? else {
        let page = SignInPage {
            frame: Frame::for_visitor("Sign in"),
            next,
            email,
            refusal: Some(WRONG_PASSWORD_TEXT),
        };
        return show_with_status(StatusCode::UNAUTHORIZED, &page);
    };
    let person = account.person;
    let proof = PasswordProof { owner: person.owner, password_hash: account.password_hash };
    let path = if is_own_path(&next) { next } else { home_path(person.owner) };
    if person.has_second_factor {
        return second_factor::ask_for_code(&state, &request, &proof, &path).await;
    }
    start_session(&state, &request, &proof, &path).await
}

/// A person, and the hash of the password that the person entered. No session is opened if the account has another
/// password by now.
pub(super) struct PasswordProof {
    pub(super) owner: SessionOwner,
    pub(super) password_hash: String,
}

impl PasswordProof {
    /// Returns the proof on which the session of this request rests; `None` if that session has ended.
    pub(super) async fn for_session(
        state: &ApiState,
        request: &HttpRequest,
        owner: SessionOwner,
    ) -> Result<Option<Self>, ApiError> {
        let password_hash = people::password_hash(&state.store, owner).await?;
        // The session is looked up after the password. A change of the password ends all sessions, so a session that is
        // still open began with this password.
        let Some(token) = session::token(request) else { return Ok(None) };
        let limits = state.settings.sessions.limits;
        let session = sessions::peek(&state.store, &token, limits, state.now()).await?;
        let is_open = session.is_some_and(|session| session.person.owner == owner);
        Ok(password_hash.filter(|_| is_open).map(|password_hash| Self { owner, password_hash }))
    }

    pub(super) fn new_session<'a>(
        &'a self,
        token: &'a SecretString,
        place: &'a SignInPlace,
        replaces: Option<&'a SecretString>,
    ) -> NewSession<'a> {
        NewSession { token, owner: self.owner, password_hash: &self.password_hash, place, replaces }
    }
}

/// Opens a session and leads to a page. Leads to the sign-in if the password of the proof no longer opens the account.
pub(super) async fn start_session(
    state: &ApiState,
    request: &HttpRequest,
    proof: &PasswordProof,
    path: &str,
) -> Answer {
    let token = new_token();
    if open_session(state, request, proof, &token).await?.is_none() {
        return Ok(redirect("/sign-in"));
    }
    let mut answer = add_session_cookie(state, redirect(path), &token)?;
    session::remember_device(state, proof.owner, &mut answer)?;
    Ok(answer)
}

/// Opens a session with this token, and ends the session that the browser had. Returns `None` if the password of the
/// proof no longer opens the account.
pub(super) async fn open_session(
    state: &ApiState,
    request: &HttpRequest,
    proof: &PasswordProof,
    token: &SecretString,
) -> Result<Option<()>, ApiError> {
    let place = session::place(request);
    let replaces = session::token(request);
    let limits = state.settings.sessions.limits;
    let new = proof.new_session(token, &place, replaces.as_ref());
    Ok(sessions::open(&state.store, new, limits, state.now()).await?)
}

/// Returns a random token of a session.
pub(super) fn new_token() -> SecretString {
    let random: [u8; 32] = clock::system_rng().random();
    SecretString::from(URL_SAFE_NO_PAD.encode(random))
}

/// Adds the cookie of a new session to an answer.
pub(super) fn add_session_cookie(state: &ApiState, mut answer: HttpResponse, token: &SecretString) -> Answer {
    answer
        .add_cookie(&session::session_cookie(state.settings.sessions, token))
        .map_err(ApiError::internal)?;
    Ok(answer)
}

/// Returns the account with this email and password; `None` if there is none or it is disabled. One password hash is
/// computed, however many accounts have the email.
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
        device: found.iter().find_map(|account| session::known_device(request, state, account.person.owner)),
        address: client_address(request),
    };
    let attempt = state.sign_ins.begin(attempt, now).await?;
    let hashes = found.iter().map(|account| account.password_hash.clone()).collect();
    if let Some(position) = state.passwords.find_match(password, hashes).await?
        && found.get(position).is_some_and(|account| !account.is_disabled)
    {
        state.sign_ins.succeed(attempt, now);
        return Ok(Some(found.swap_remove(position)));
    }
    note_refusals(state, request, found.into_iter().map(|account| account.person.owner).collect());
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
    let is_right = state.passwords.find_match(password, hash.into_iter().collect()).await?.is_some();
    if is_right {
        state.sign_ins.succeed(attempt, state.now());
    } else {
        note_refusals(state, request, vec![person.owner]);
    }
    Ok(is_right)
}

/// Records refused passwords in the background: an answer that waited for the commit would show by its time that the
/// account exists.
fn note_refusals(state: &web::Data<ApiState>, request: &HttpRequest, owners: Vec<SessionOwner>) {
    let state = state.clone();
    let address = client_address(request);
    actix_web::rt::spawn(async move {
        for owner in owners {
            let noted = sessions::record_refused_sign_in(&state.store, owner, address, state.now()).await;
            if let Err(error) = noted {
                tracing::warn!(%error, "failed to record a refused sign-in");
            }
        }
    });
}

/// True for a path of a page of this service, so that the sign-in leads nowhere else. The path must be plain, without
/// encoding and without empty or dotted segments, so that browser and server see the same path in it.
pub(super) fn is_own_path(next: &str) -> bool {
    let (path, query) = next.split_once('?').unwrap_or((next, ""));
    let starts = ["/console", "/dashboard", "/account"];
    let Some(rest) = starts.iter().find_map(|start| path.strip_prefix(start)) else { return false };
    let mut segments = rest.split('/');
    segments.next() == Some("")
        && segments.all(is_plain_segment)
        && query.bytes().all(|byte| byte.is_ascii_graphic())
}

/// True for a segment that needs no encoding and is neither empty nor dotted.
fn is_plain_segment(segment: &str) -> bool {
    !segment.is_empty()
        && !segment.starts_with('.')
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
}

/// Returns the path of the page that a person sees first after signing in.
pub(super) fn home_path(owner: SessionOwner) -> String {
    match owner {
        SessionOwner::Operator(_) => "/console".to_owned(),
        SessionOwner::Contact { taxpayer, .. } => format!("/dashboard/{taxpayer}"),
        SessionOwner::Integrator(_) => "/dashboard/taxpayers".to_owned(),
    }
}

/// GET /dashboard: leads to the first page of the person.
async fn go_home(signed_in: SignedIn) -> HttpResponse {
    std::future::ready(redirect(&home_path(signed_in.session.person.owner))).await
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
        sessions::close(&state.store, &token, signed_in.session.person.owner, state.now()).await?;
    }
    let mut answer = redirect("/sign-in");
    answer.add_cookie(&session::removal_cookie(state.settings.sessions)).map_err(ApiError::internal)?;
    Ok(answer)
}

#[derive(Template)]
#[template(path = "password.html")]
struct PasswordPage {
    frame: Frame,
    refusal: Option<String>,
}

#[derive(Deserialize)]
struct PasswordForm {
    present: SecretString,
    new: SecretString,
    again: SecretString,
}

/// GET /account/password: shows the form.
async fn password_page(signed_in: SignedIn) -> Answer {
    std::future::ready(password_answer(&signed_in, None)).await
}

fn password_answer(signed_in: &SignedIn, refusal: Option<String>) -> Answer {
    let person = &signed_in.session.person;
    let status = if refusal.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let page =
        PasswordPage { frame: Frame::for_person(person, &signed_in.csrf, "Change your password"), refusal };
    show_with_status(status, &page)
}

/// POST /account/password: changes the password, ends all sessions of the person, and opens a new one.
async fn change_password(
    state: web::Data<ApiState>,
    request: HttpRequest,
    signed_in: SignedIn,
    form: Form<PasswordForm>,
) -> Answer {
    let PasswordForm { present, new, again } = &form.0;
    let person = &signed_in.session.person;
    if let Some(refusal) = password_refusal(present, new, again) {
        return password_answer(&signed_in, Some(refusal));
    }
    if !is_own_password(&state, &request, person, present.clone()).await? {
        return password_answer(&signed_in, Some("The present password is not right.".to_owned()));
    }
    let salt = people::password_hash_with_email(&state.store, &person.email).await?;
    let hash = state.passwords.hash(new.clone(), salt).await?;
    let change = PasswordChange { owner: person.owner, hash: &hash, by: person.owner.actor() };
    people::set_password(&state.store, change, state.now()).await?;
    let proof = PasswordProof { owner: person.owner, password_hash: hash };
    let mut answer = start_session(&state, &request, &proof, &home_path(person.owner)).await?;
    let noticed =
        go_to(&home_path(person.owner), "Your password is changed. You are signed out everywhere else.");
    for cookie in noticed.cookies() {
        answer.add_cookie(&cookie).map_err(ApiError::internal)?;
    }
    Ok(answer)
}

/// Returns the reason why a new password is refused; `None` if it is accepted.
fn password_refusal(present: &SecretString, new: &SecretString, again: &SecretString) -> Option<String> {
    let [present, new, again] = [present, new, again].map(ExposeSecret::expose_secret);
    if let Err(fault) = password::check(new) {
        Some(fault.to_string())
    } else if new != again {
        Some("The two new passwords are not the same.".to_owned())
    } else if new == present {
        Some("The new password is the present one. Choose another.".to_owned())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_in_leads_to_pages_of_this_service_only() {
        for ours in
            ["/console", "/console/runs?state=paused&q=a%20b", "/dashboard/7/invoices", "/account/password"]
        {
            assert!(is_own_path(ours), "{ours}");
        }
        for other in [
            "",
            "//evil.example/console",
            "https://evil.example",
            "/\\evil.example",
            "/v1",
            "/console\r\nx",
            "/console\0",
            "/console%00",
            "/console?a\0",
            "/console?a=\u{e9}",
            "/console/../v1",
            "/console/./runs",
            "/console//evil.example",
            "/console/\tx",
            "/consolex",
            "console",
        ] {
            assert!(!is_own_path(other), "{other}");
        }
    }

    #[test]
    fn a_new_password_is_long_enough_and_new() {
        let check = |present: &str, new: &str, again: &str| {
            password_refusal(&present.into(), &new.into(), &again.into()).is_none()
        };
        assert!(check("the first password", "a few easy words", "a few easy words"));
        assert!(!check("the first password", "eleven char", "eleven char"));
        assert!(!check("the first password", "a few easy words", "a few easy word"));
        assert!(!check("the first password", "the first password", "the first password"));
        assert!(!check("the first password", &"x".repeat(129), &"x".repeat(129)));
        assert!(!check("the first password", "password1234", "password1234"));
    }
}
