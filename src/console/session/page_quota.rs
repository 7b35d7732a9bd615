//! Limits the pages that each person may request, with all sessions together. A request counts once, however often its
//! session is looked up.

use actix_web::{HttpMessage, HttpRequest};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::domain::access::session::SessionOwner;
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

/// Counts a request whose session was found towards the limits of its person and of the person's account, or refuses
/// it. From then on, requests of this session no longer count towards the limit of the client's address.
pub(super) fn admit_person(
    request: &HttpRequest,
    state: &ApiState,
    token: &SecretString,
    person: SessionOwner,
) -> Result<(), ApiError> {
    let slot = request.extensions_mut().remove::<PageSlot>();
    let Some(slot) = slot else {
        return Ok(());
    };
    let slot = state
        .pages
        .admit_person(slot, token_key(token), person, state.now())?;
    request.extensions_mut().insert(slot);
    Ok(())
}

fn token_key(token: &SecretString) -> u128 {
    let digest = Sha256::digest(token.expose_secret());
    digest
        .iter()
        .take(16)
        .fold(0, |number, byte| number << 8 | u128::from(*byte))
}
