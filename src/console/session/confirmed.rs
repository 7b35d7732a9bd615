//! The right of a person who entered password and code a short time ago, at the sign-in or on the page that asks for
//! both again.

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use futures_util::future::LocalBoxFuture;

use crate::console::session::accounts::Owner;
use crate::console::session::operators::Admin;
use crate::console::session::{Refusal, SignedIn, find_session};
use crate::domain::access::session::OperatorRole;
use crate::http::extract::role::NeedsRole;
use crate::http::state::ApiState;

/// A right to change who has access: people, keys, second factors. A person who did not confirm is redirected to the
/// page that asks for password and code. A person whose role is too low is refused first.
#[derive(Debug)]
pub(crate) struct Confirmed<R>(pub(crate) R);

/// A right that a session can give, such as `Owner`.
pub(crate) trait SessionRight:
    FromRequest<Error = Refusal, Future = LocalBoxFuture<'static, Result<Self, Refusal>>> + 'static
{
}

impl SessionRight for SignedIn {}
impl SessionRight for Owner {}
impl SessionRight for Admin {}

impl<R: NeedsRole> NeedsRole for Confirmed<R> {
    const LEAST_ROLE: Option<OperatorRole> = R::LEAST_ROLE;
}

impl<R: SessionRight> FromRequest for Confirmed<R> {
    type Error = Refusal;
    type Future = LocalBoxFuture<'static, Result<Self, Refusal>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let right = R::from_request(request, payload);
        let request = request.clone();
        Box::pin(async move {
            let right = right.await?;
            let now = ApiState::from_request(&request)?.now();
            if !find_session(&request)
                .await?
                .session
                .is_recently_confirmed(now)
            {
                return Err(Refusal::ConfirmationMissing);
            }
            Ok(Self(right))
        })
    }
}
