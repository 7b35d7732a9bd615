//! Which taxpayer a call on the access point surface acts for (decisions.md). With a taxpayer's key it is
//! that one; with an integrator's, the first of these that is present and well formed decides: the
//! business id, the IRN's service id, the header `x-taxpayer-id`.

use std::convert::Infallible;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use serde_json::{Map, Value};

use crate::domain::caller::Caller;
use crate::domain::ids::{IntegratorId, TaxpayerId};
use crate::domain::irn::Irn;
use crate::domain::party::Taxpayer;
use crate::http::error::ApiError;
use crate::http::forms::taxpayer::is_uuid;
use crate::http::ident;
use crate::http::state::State;
use crate::store::taxpayers;

/// The header `x-taxpayer-id`, where it is well formed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hint(Option<TaxpayerId>);

impl FromRequest for Hint {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let text = request.headers().get("x-taxpayer-id").and_then(|value| value.to_str().ok());
        ready(Ok(Self(text.and_then(ident::number).map(TaxpayerId))))
    }
}

/// The taxpayer whose IRN stands in a path; an IRN of anybody else is of no invoice.
pub(crate) async fn for_irn(state: &State, caller: Caller, irn: &Irn) -> Result<Taxpayer, ApiError> {
    let found = match caller {
        Caller::Taxpayer(id) => own(state, id).await?,
        Caller::Integrator(integrator) => {
            taxpayers::owned_by_with_service_id(&state.store, integrator, irn.service_id()).await?
        }
    };
    let is_theirs = |taxpayer: &Taxpayer| irn.has_service_id(&taxpayer.service_id);
    found.filter(is_theirs).ok_or_else(ApiError::invoice_not_found)
}

/// The taxpayer that a body is about; `None` where nothing in it says so.
pub(crate) async fn for_body(
    state: &State,
    caller: Caller,
    body: &Map<String, Value>,
    hint: Hint,
) -> Result<Option<Taxpayer>, ApiError> {
    let named = match caller {
        Caller::Taxpayer(id) => return Ok(own(state, id).await?),
        Caller::Integrator(integrator) => named(state, integrator, body, hint).await?,
    };
    match named {
        Named::Nobody => Ok(None),
        Named::Somebody(found) => found.map(Some).ok_or_else(ApiError::taxpayer_not_found),
    }
}

async fn own(state: &State, id: TaxpayerId) -> Result<Option<Taxpayer>, ApiError> {
    Ok(taxpayers::with_id(state.store.reader(), id).await?)
}

/// Who a body names.
enum Named {
    Nobody,
    /// None where it is no taxpayer of the integrator.
    Somebody(Option<Taxpayer>),
}

async fn named(
    state: &State,
    integrator: IntegratorId,
    body: &Map<String, Value>,
    hint: Hint,
) -> Result<Named, ApiError> {
    let store = &state.store;
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let found = if let Some(id) = text("business_id").filter(|id| is_uuid(id)) {
        taxpayers::owned_by_with_business_id(store, integrator, id).await?
    } else if let Some(irn) = text("irn").and_then(|irn| Irn::parse(irn).ok()) {
        taxpayers::owned_by_with_service_id(store, integrator, irn.service_id()).await?
    } else if let Hint(Some(id)) = hint {
        taxpayers::owned_by_with_id(store, integrator, id).await?
    } else {
        return Ok(Named::Nobody);
    };
    Ok(Named::Somebody(found))
}
