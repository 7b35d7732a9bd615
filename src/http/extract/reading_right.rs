//! The right to read an answer that is loaded while it is sent. A slow reader takes hours for a long list, so the right
//! is checked again before more of the list is loaded.

use actix_web::HttpRequest;
use actix_web::web;
use futures_util::future::LocalBoxFuture;
use secrecy::{ExposeSecret, SecretString};

use crate::domain::access::caller::KeyKind;
use crate::http::extract::auth;
use crate::http::middleware::client_address::client_address;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::keys;

/// A function that returns true if the reader may still read.
type RightCheck = dyn Fn() -> LocalBoxFuture<'static, Result<bool, ApiError>>;

/// The right of the reader of an answer. `None` if the answer is complete before it is sent.
pub(crate) struct ReadingRight(Option<Box<RightCheck>>);

impl ReadingRight {
    pub(crate) fn new(
        check: impl Fn() -> LocalBoxFuture<'static, Result<bool, ApiError>> + 'static,
    ) -> Self {
        Self(Some(Box::new(check)))
    }

    /// Returns a right that is never checked again, for a reader who gets the whole answer at once.
    pub(crate) fn unchecked() -> Self {
        Self(None)
    }

    /// Returns the right that the key of the request gives. A request that a page sends has no key, so its right is not
    /// checked again.
    pub(crate) fn from_key(request: &HttpRequest, state: &web::Data<ApiState>) -> Self {
        let key = auth::sent_key(request);
        let Some((kind, key)) = key.and_then(|key| Some((KeyKind::from_key(key)?, key))) else {
            return Self::unchecked();
        };
        let key = SecretString::from(key.to_owned());
        let address = client_address(request);
        let state = state.clone();
        Self::new(move || {
            let state = state.clone();
            let key = key.clone();
            Box::pin(async move {
                let now = state.now();
                let valid_key =
                    keys::find_valid(&state.store, kind, key.expose_secret(), now).await?;
                if let Some(valid_key) = &valid_key {
                    state.key_usage.record_use(valid_key, address);
                }
                Ok(valid_key.is_some())
            })
        })
    }

    /// Fails if the reader may not read any more, or if the check itself fails.
    pub(crate) async fn require_still_held(&self) -> Result<(), ApiError> {
        let Some(check) = &self.0 else {
            return Ok(());
        };
        if check().await? {
            return Ok(());
        }
        let message = "The key or the session ended while the answer was sent";
        Err(ApiError::new(ErrorCode::Unauthenticated, message))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::domain::access::api_key::KeyOwner;
    use crate::http::testing::{TAXPAYER, TAXPAYER_KEY, start_app};

    #[actix_web::test]
    async fn a_reader_may_read_until_its_key_is_revoked() {
        let app = start_app().await;
        let state = &app.state;
        let right_for_key = |key: &str| {
            let request = TestRequest::default().insert_header(("x-api-key", key));
            ReadingRight::from_key(&request.to_http_request(), state)
        };
        let no_key = TestRequest::default().to_http_request();
        let rights = [
            right_for_key(TAXPAYER_KEY),
            right_for_key("tpk_unknown"),
            ReadingRight::from_key(&no_key, state),
        ];
        let owner = KeyOwner {
            kind: KeyKind::Taxpayer,
            id: TAXPAYER.0,
        };
        for expected in [[true, false, true], [false, false, true]] {
            for (right, may_read) in rights.iter().zip(expected) {
                assert_eq!(right.require_still_held().await.is_ok(), may_read);
            }
            let tx = state.store.begin().await.unwrap();
            keys::revoke_all(&tx, owner).await.unwrap();
            tx.commit().await.unwrap();
        }
    }
}
