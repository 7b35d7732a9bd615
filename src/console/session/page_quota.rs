//! Counts the pages that each session asks for, because they are limited. A request counts once, however often its
//! session is looked up.

use actix_web::{HttpMessage, HttpRequest};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::http::limits::PageSlot;
use crate::http::middleware::client_address::client_address;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// Lets a request for a page with this token pass, or refuses it if too many are being answered. The token is looked up
/// afterwards, so invalid tokens count, too. The request holds its place until it is answered.
pub(super) fn admit(
    request: &HttpRequest,
    state: &ApiState,
    token: &SecretString,
) -> Result<(), ApiError> {
    if request.extensions().contains::<PageSlot>() {
        return Ok(());
    }
    let slot = state
        .pages
        .admit(half_hash(token), client_address(request), state.now())?;
    request.extensions_mut().insert(slot);
    Ok(())
}

/// Remembers that there is a session with this token: its next pages count for the session, not for the address.
pub(super) fn know(state: &ApiState, token: &SecretString) {
    state.pages.remember(half_hash(token), state.now());
}

fn half_hash(token: &SecretString) -> u128 {
    let digest = Sha256::digest(token.expose_secret());
    digest
        .iter()
        .take(16)
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}
