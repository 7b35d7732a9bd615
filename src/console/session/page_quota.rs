//! Limits the pages that each session may request. A request counts once, however often its session is looked up.

use actix_web::{HttpMessage, HttpRequest};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::http::limits::PageSlot;
use crate::http::middleware::client_address::client_address;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// Counts a request for a page with this token, or refuses it if too many are in progress. The token is looked up
/// afterwards, so invalid tokens count, too. The request counts until it is answered.
pub(super) fn admit_page_request(
    request: &HttpRequest,
    state: &ApiState,
    token: &SecretString,
) -> Result<(), ApiError> {
    if request.extensions().contains::<PageSlot>() {
        return Ok(());
    }
    let slot = state
        .pages
        .admit(token_key(token), client_address(request), state.now())?;
    request.extensions_mut().insert(slot);
    Ok(())
}

/// Stores that a session with this token exists. From now on its requests count towards the limit of the session, not
/// towards that of the client's address.
pub(super) fn remember_session(state: &ApiState, token: &SecretString) {
    state.pages.remember_session(token_key(token), state.now());
}

fn token_key(token: &SecretString) -> u128 {
    let digest = Sha256::digest(token.expose_secret());
    digest
        .iter()
        .take(16)
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}
