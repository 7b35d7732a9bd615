//! The token in the path of the authority's notices authorizes them. A wrong token gets the 404 of an unknown path,
//! and the comparison takes constant time, so that a caller without the token learns nothing.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::http::respond::error::ApiError;

/// Refuses every token except the configured one. If none is configured, refuses all.
pub(crate) fn check(given: &str, token: &SecretString) -> Result<(), ApiError> {
    let token = token.expose_secret();
    let is_same = Sha256::digest(given).as_slice().ct_eq(Sha256::digest(token).as_slice());
    let is_right = bool::from(is_same) && !token.is_empty();
    is_right.then_some(()).ok_or_else(ApiError::route_not_found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_that_is_set_is_right() {
        let set = SecretString::from("a-token-of-16-letters");
        assert!(check("a-token-of-16-letters", &set).is_ok());
        for wrong in ["", "a-token-of-16-letter", "A-token-of-16-letters", "a-token-of-16-letters "] {
            let refused = check(wrong, &set).unwrap_err();
            assert_eq!((refused.status.as_u16(), refused.code.as_str()), (404, "ROUTE_NOT_FOUND"), "{wrong}");
        }
    }

    #[test]
    fn where_no_token_is_set_none_is_right() {
        assert!(check("", &SecretString::from("")).is_err());
    }
}
