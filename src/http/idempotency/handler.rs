//! Sends one command with the claim on the idempotency key. Its response is stored in the command's transaction.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest};

use crate::actors::taxpayer::command::{CommandReply, Idempotency, RenderAnswer};
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::access::claim::IdempotencyClaim;
use crate::http::extract::role::NeedsRole;
use crate::http::idempotency::stored_response::{self, AlreadyStored};
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;

/// The claim of a request on its idempotency key; `None` if the request has no key.
#[derive(Debug, Clone)]
pub(crate) struct IdempotentRequest(Option<IdempotencyClaim>);

impl NeedsRole for IdempotentRequest {}

impl FromRequest for IdempotentRequest {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self(request.extensions().get::<IdempotencyClaim>().cloned())))
    }
}

impl IdempotentRequest {
    /// Executes the one command that `send` sends, and stores its response, rendered by `show`, for the key.
    pub(crate) async fn answer<T: 'static>(
        self,
        taxpayers: &TaxpayerHandle,
        show: impl Fn(&T) -> ApiResponse + Send + Sync + 'static,
        send: impl AsyncFnOnce(TaxpayerHandle) -> Result<T, TaxpayerError>,
    ) -> Result<ApiResponse, ApiError>
    where
        for<'r> &'r T: TryFrom<&'r CommandReply>,
    {
        let show = Arc::new(show);
        let idempotency = self.0.map(|claim| {
            let show = Arc::clone(&show);
            let render: RenderAnswer =
                Arc::new(move |reply| stored_response::to_stored(show(<&T>::try_from(reply).ok()?).into()));
            Idempotency { claim, render: Some(render) }
        });
        let is_keyed = idempotency.is_some();
        let reply = send(taxpayers.with_idempotency(idempotency)).await?;
        let answer = show(&reply);
        Ok(if is_keyed { answer.marked(AlreadyStored) } else { answer })
    }

    /// Returns the handle for a command that is executed once per key, but whose response is secret and never stored.
    pub(crate) fn unshown(self, taxpayers: &TaxpayerHandle) -> TaxpayerHandle {
        taxpayers.with_idempotency(self.0.map(|claim| Idempotency { claim, render: None }))
    }
}
