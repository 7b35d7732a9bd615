//! Opens a session for a person whose password was right. Opens none if the password was changed since it was checked,
//! or if the person has set up a second factor since and entered no code.

use actix_web::{HttpRequest, HttpResponse};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngExt;
use secrecy::SecretString;
use timing::clock;

use crate::console::page::{Answer, redirect};
use crate::console::session;
use crate::domain::access::session::{SessionOwner, SignInPlace};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::people;
use crate::store::accounts::sessions::{self, NewSession};

/// A person, and the stored hash that matched the entered password. No session is opened if the account now has another
/// hash.
pub(super) struct PasswordProof {
    pub(super) owner: SessionOwner,
    pub(super) password_hash: String,
    /// True if the person has entered a code, too, or enters one before the session opens.
    pub(super) has_code: bool,
}

impl PasswordProof {
    /// Returns a proof with the stored password hash of `owner`; `None` if this request has no open session of `owner`.
    /// The caller checks a code before it opens a session with the proof.
    pub(super) async fn from_open_session(
        state: &ApiState,
        request: &HttpRequest,
        owner: SessionOwner,
    ) -> Result<Option<Self>, ApiError> {
        let password_hash = people::password_hash(&state.store, owner).await?;
        // The session is looked up after the password hash. A change of the password ends all sessions, so a session
        // that is still open began with this password.
        let Some(token) = session::session_token(request) else {
            return Ok(None);
        };
        let limits = state.settings.sessions.limits;
        let session =
            sessions::find_without_extending(&state.store, &token, limits, state.now()).await?;
        let is_open = session.is_some_and(|session| session.person.owner == owner);
        Ok(password_hash.filter(|_| is_open).map(|password_hash| Self {
            owner,
            password_hash,
            has_code: true,
        }))
    }

    pub(super) fn new_session<'a>(
        &'a self,
        token: &'a SecretString,
        place: &'a SignInPlace,
        replaces: Option<&'a SecretString>,
    ) -> NewSession<'a> {
        NewSession {
            token,
            owner: self.owner,
            password_hash: &self.password_hash,
            has_code: self.has_code,
            place,
            replaces,
        }
    }
}

/// Opens a session and redirects to a page. Redirects to the sign-in if the account's password or second factor has
/// changed since the proof.
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
    session::remember_device(state, request, proof.owner, &mut answer)?;
    Ok(answer)
}

/// Opens a session with this token, and ends the session that the browser had. Returns `None` if the account's
/// password or second factor has changed since the proof.
pub(super) async fn open_session(
    state: &ApiState,
    request: &HttpRequest,
    proof: &PasswordProof,
    token: &SecretString,
) -> Result<Option<()>, ApiError> {
    let place = session::sign_in_place(request);
    let replaces = session::session_token(request);
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
pub(super) fn add_session_cookie(
    state: &ApiState,
    mut answer: HttpResponse,
    token: &SecretString,
) -> Answer {
    answer
        .add_cookie(&session::session_cookie(state.settings.sessions, token))
        .map_err(ApiError::internal)?;
    Ok(answer)
}
