//! Finds the taxpayer that a call to the access point (`/v1/app`) acts for. A taxpayer's key acts for that taxpayer. An
//! integrator's call names the taxpayer by the first of these that is valid: the business id, the IRN's service id,
//! `integrator_service_id`, `agent_tin`, the header `x-taxpayer-id`.

use std::convert::Infallible;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::HeaderName;
use actix_web::{FromRequest, HttpRequest};
use database::StoreError;
use serde_json::{Map, Value};

use crate::domain::access::caller::Caller;
use crate::domain::invoice::irn::{Irn, is_service_id};
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId, parse_id};
use crate::domain::party::Taxpayer;
use crate::http::forms::taxpayer::is_uuid;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;

pub(crate) const TAXPAYER_ID_HEADER: HeaderName = HeaderName::from_static("x-taxpayer-id");

/// The header `x-taxpayer-id`; `None` if the header is absent or malformed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaxpayerHint(Option<TaxpayerId>);

impl FromRequest for TaxpayerHint {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let text = request
            .headers()
            .get(TAXPAYER_ID_HEADER)
            .and_then(|value| value.to_str().ok());
        ready(Ok(Self(text.and_then(parse_id).map(TaxpayerId))))
    }
}

/// Returns the taxpayer whose service id is in the IRN. Fails with "Invoice not found" if the caller may not act for
/// that taxpayer.
pub(crate) async fn for_irn(
    state: &ApiState,
    caller: Caller,
    irn: &Irn,
) -> Result<Taxpayer, ApiError> {
    let found = match caller {
        Caller::Taxpayer(id) => find_by_id(state, id).await?,
        Caller::Integrator(integrator) => {
            taxpayers::find_owned_by_service_id(&state.store, integrator, irn.service_id()).await?
        }
    };
    let found = found.filter(|taxpayer| irn.has_service_id(&taxpayer.service_id));
    require_verified(state, found.ok_or_else(ApiError::invoice_not_found)?)
}

/// Returns the taxpayer that the call acts for. Returns `None` if an integrator's request names no taxpayer.
pub(crate) async fn for_body(
    state: &ApiState,
    caller: Caller,
    body: &Map<String, Value>,
    hint: TaxpayerHint,
) -> Result<Option<Taxpayer>, ApiError> {
    match (caller, TaxpayerReference::from_body(body, hint)) {
        (Caller::Taxpayer(id), _) => find_by_id(state, id)
            .await?
            .map(|found| require_verified(state, found))
            .transpose(),
        (Caller::Integrator(_), None) => Ok(None),
        (Caller::Integrator(integrator), Some(name)) => {
            let found = find_by_reference(state, integrator, name)
                .await?
                .ok_or_else(ApiError::taxpayer_not_found)?;
            require_verified(state, found).map(Some)
        }
    }
}

/// Refuses a taxpayer that the authority has not confirmed, unless the settings allow it. Otherwise anyone could
/// register with the service id of another taxpayer.
fn require_verified(state: &ApiState, taxpayer: Taxpayer) -> Result<Taxpayer, ApiError> {
    taxpayer.check_verified(state.settings.verification)?;
    Ok(taxpayer)
}

async fn find_by_id(state: &ApiState, id: TaxpayerId) -> Result<Option<Taxpayer>, ApiError> {
    Ok(taxpayers::find_by_id(state.store.reader(), id).await?)
}

async fn find_by_reference(
    state: &ApiState,
    integrator: IntegratorId,
    name: TaxpayerReference<'_>,
) -> Result<Option<Taxpayer>, StoreError> {
    let store = &state.store;
    match name {
        TaxpayerReference::BusinessId(id) => {
            taxpayers::find_owned_by_business_id(store, integrator, id).await
        }
        TaxpayerReference::Irn(irn) => {
            taxpayers::find_owned_by_service_id(store, integrator, irn.service_id()).await
        }
        TaxpayerReference::ServiceId(id) => {
            taxpayers::find_owned_by_service_id(store, integrator, id).await
        }
        TaxpayerReference::Tin(tin) => taxpayers::find_owned_by_tin(store, integrator, tin).await,
        TaxpayerReference::Id(id) => taxpayers::find_owned_by_id(store, integrator, id).await,
    }
}

/// Returns true if a call with a taxpayer's key names another taxpayer in `integrator_service_id`. In an integrator's
/// call, this may be the integrator's own id, so it is not checked.
pub(crate) async fn names_another_taxpayer(
    state: &ApiState,
    caller: Caller,
    body: &Map<String, Value>,
) -> Result<bool, ApiError> {
    let (Caller::Taxpayer(id), Some(service_id)) = (caller, integrator_service_id(body)) else {
        return Ok(false);
    };
    let owner = taxpayers::find_by_service_id(&state.store, service_id).await?;
    Ok(owner.is_some_and(|owner| owner != id))
}

fn integrator_service_id(body: &Map<String, Value>) -> Option<&str> {
    let text = body
        .get("integrator_service_id")
        .and_then(Value::as_str)
        .map(str::trim);
    text.filter(|text| is_service_id(text))
}

/// The value by which an integrator's request names a taxpayer.
#[derive(Debug, PartialEq, Eq)]
enum TaxpayerReference<'a> {
    BusinessId(&'a str),
    Irn(Irn),
    ServiceId(&'a str),
    Tin(&'a str),
    Id(TaxpayerId),
}

impl<'a> TaxpayerReference<'a> {
    /// Returns the first name that is present and valid, in the order of the variants; `None` if there is none.
    fn from_body(body: &'a Map<String, Value>, TaxpayerHint(hint): TaxpayerHint) -> Option<Self> {
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::trim);
        let business_id = text("business_id")
            .filter(|id| is_uuid(id))
            .map(Self::BusinessId);
        let irn = || {
            text("irn")
                .and_then(|irn| Irn::parse(irn).ok())
                .map(Self::Irn)
        };
        let service_id = || integrator_service_id(body).map(Self::ServiceId);
        let tin = || {
            text("agent_tin")
                .filter(|tin| !tin.is_empty())
                .map(Self::Tin)
        };
        business_id
            .or_else(irn)
            .or_else(service_id)
            .or_else(tin)
            .or(hint.map(Self::Id))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BUSINESS: &str = "bb99420d-d6bb-422c-b371-b9f6d6009aae";
    const IRN: &str = "INV001-94AD90FB-20261121";

    #[test]
    fn the_first_name_that_is_well_formed_decides() {
        let hint = TaxpayerHint(Some(TaxpayerId(7)));
        let irn = || Some(TaxpayerReference::Irn(Irn::parse(IRN).unwrap()));
        let cases = [
            (
                json!({ "business_id": BUSINESS, "irn": IRN }),
                Some(TaxpayerReference::BusinessId(BUSINESS)),
            ),
            (
                json!({ "business_id": format!(" {BUSINESS} ") }),
                Some(TaxpayerReference::BusinessId(BUSINESS)),
            ),
            (json!({ "business_id": "odd", "irn": IRN }), irn()),
            (json!({ "business_id": 1, "irn": IRN }), irn()),
            (
                json!({ "irn": IRN, "integrator_service_id": "A1B2C3D4", "agent_tin": "1" }),
                irn(),
            ),
            (
                json!({ "irn": "odd", "integrator_service_id": " A1B2C3D4 ", "agent_tin": "1" }),
                Some(TaxpayerReference::ServiceId("A1B2C3D4")),
            ),
            (
                json!({ "integrator_service_id": "my service", "agent_tin": " 1-2 " }),
                Some(TaxpayerReference::Tin("1-2")),
            ),
            (
                json!({ "irn": "odd", "agent_tin": " " }),
                Some(TaxpayerReference::Id(TaxpayerId(7))),
            ),
        ];
        for (body, name) in cases {
            assert_eq!(
                TaxpayerReference::from_body(body.as_object().unwrap(), hint),
                name,
                "{body}"
            );
        }
        assert_eq!(
            TaxpayerReference::from_body(&Map::new(), TaxpayerHint(None)),
            None
        );
    }
}
