//! The cookie that marks a browser in which a person has signed in before. Attempts to sign in to the account of this
//! person from such a browser are not slowed down by the failed attempts of others (`store::accounts::devices`).

use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use actix_web::{HttpRequest, HttpResponse};
use secrecy::{ExposeSecret, SecretString};

use crate::domain::access::session::SessionOwner;
use crate::http::respond::error::ApiError;
use crate::http::state::{ApiState, SessionSettings};
use crate::store::accounts::devices::{self, Device};

const KNOWN_DAYS: i64 = 180;

/// Returns the name of the cookie. Each kind of person has its own, so that one browser can be known for one person of
/// each kind.
fn cookie_name(settings: SessionSettings, owner: SessionOwner) -> String {
    let prefix = if settings.is_secure { "__Host-" } else { "" };
    format!("{prefix}device-{}", owner.kind())
}

/// Returns the browser of a request, if this person has signed in with it before.
pub(crate) fn known_device(
    request: &HttpRequest,
    state: &ApiState,
    owner: SessionOwner,
) -> Option<Device> {
    let token = sent_device_token(request, state, owner)?;
    devices::recognise(&state.store, owner, &token)
}

/// Returns the token in the request's cookie for this kind of person. The token may belong to another person, or the
/// sender may have invented it.
fn sent_device_token(
    request: &HttpRequest,
    state: &ApiState,
    owner: SessionOwner,
) -> Option<SecretString> {
    let cookie = request.cookie(&cookie_name(state.settings.sessions, owner))?;
    Some(SecretString::from(cookie.value().to_owned()))
}

/// Adds a cookie to the answer that marks the browser as known for the person who has just signed in. A browser that is
/// known already keeps its token, so that it does not get new attempts by signing in again.
pub(crate) fn remember_device(
    state: &ApiState,
    request: &HttpRequest,
    owner: SessionOwner,
    answer: &mut HttpResponse,
) -> Result<(), ApiError> {
    let settings = state.settings.sessions;
    let known = sent_device_token(request, state, owner)
        .filter(|token| devices::recognise(&state.store, owner, token).is_some());
    let token = match known {
        Some(token) => token,
        None => devices::new_token(&state.store, owner)?,
    };
    let cookie = Cookie::build(
        cookie_name(settings, owner),
        token.expose_secret().to_owned(),
    )
    .path("/")
    .http_only(true)
    .secure(settings.is_secure)
    .same_site(SameSite::Strict)
    .max_age(Duration::days(KNOWN_DAYS));
    answer
        .add_cookie(&cookie.finish())
        .map_err(ApiError::internal)
}
