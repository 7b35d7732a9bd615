//! Sends a command together with the request's claim on its idempotency key. The response is stored in the transaction
//! of the command.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest};

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::envelope::{OnceClaim, Render};
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::access::claim::IdempotencyClaim;
use crate::domain::kernel::ids::TaxpayerId;
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
        ready(Ok(Self(
            request.extensions().get::<IdempotencyClaim>().cloned(),
        )))
    }
}

impl IdempotentRequest {
    /// Executes the command once for the key. Stores the response, which `show` renders, in the command's transaction.
    pub(crate) async fn answer<C: TaxpayerCommand>(
        self,
        taxpayers: &TaxpayerHandle,
        taxpayer: TaxpayerId,
        command: C,
        show: impl Fn(&C::Output) -> ApiResponse + Send + Sync + 'static,
    ) -> Result<ApiResponse, ApiError> {
        let Some(claim) = self.0 else {
            return Ok(show(&taxpayers.send(taxpayer, command).await?));
        };
        let show = Arc::new(show);
        let rendered = Arc::clone(&show);
        let render: Render<C::Output> =
            Arc::new(move |output| stored_response::to_stored_response(rendered(output).into()));
        let once = OnceClaim {
            claim,
            render: Some(render),
        };
        let output = taxpayers.send_once(taxpayer, command, Some(once)).await?;
        Ok(show(&output).with_mark(AlreadyStored))
    }

    /// Executes a command once for the key. The response contains a secret, so it is never stored.
    pub(crate) async fn send<C: TaxpayerCommand>(
        self,
        taxpayers: &TaxpayerHandle,
        taxpayer: TaxpayerId,
        command: C,
    ) -> Result<C::Output, TaxpayerError> {
        taxpayers
            .send_once(taxpayer, command, self.0.map(OnceClaim::without_answer))
            .await
    }
}
