//! Finds the taxpayer that a call to the access point (`/v1/app`) acts for. A taxpayer's key acts for that taxpayer. An
//! integrator's call may name the taxpayer in several places. The first valid value counts, in this order: the business
//! id, the IRN's service id, `integrator_service_id`, `agent_tin`, the header `x-taxpayer-id`.

use actix_web::dev::Payload;
use actix_web::http::header::HeaderName;
use actix_web::{FromRequest, HttpRequest};
use database::StoreError;
use futures_util::future::LocalBoxFuture;
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

/// The caller of the access point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppCaller {
    caller: Caller,
    /// The taxpayer in the header `x-taxpayer-id`; `None` if the header is absent or malformed.
    header_taxpayer: Option<TaxpayerId>,
}

impl FromRequest for AppCaller {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let text = request
            .headers()
            .get(TAXPAYER_ID_HEADER)
            .and_then(|value| value.to_str().ok());
        let header_taxpayer = text.and_then(parse_id).map(TaxpayerId);
        let caller = Caller::from_request(request, payload);
        Box::pin(async move {
            Ok(Self {
                caller: caller.await?,
                header_taxpayer,
            })
        })
    }
}

impl AppCaller {
    /// Returns a warning if the header `x-taxpayer-id` names another taxpayer than the one that the call acts for. The
    /// header counts only if nothing else names a taxpayer.
    pub(crate) fn ignored_header_warning(self, taxpayer: &Taxpayer) -> Option<String> {
        let ignored = self.header_taxpayer.filter(|id| *id != taxpayer.id)?;
        let reason = match self.caller {
            Caller::Taxpayer(_) => "to which the key belongs",
            Caller::Integrator(_) => "whom the IRN or the body names",
        };
        let acting = taxpayer.id;
        Some(format!(
            "x-taxpayer-id {ignored} is ignored: the call acts for taxpayer {acting}, {reason}"
        ))
    }
}

/// Returns the taxpayer whose service id is in the IRN. Fails with "Invoice not found" if the caller may not act for
/// that taxpayer.
pub(crate) async fn for_irn(
    state: &ApiState,
    caller: AppCaller,
    irn: &Irn,
) -> Result<Taxpayer, ApiError> {
    let candidate = match caller.caller {
        Caller::Taxpayer(id) => find_by_id(state, id).await?,
        Caller::Integrator(integrator) => {
            taxpayers::find_owned_by_service_id(&state.store, integrator, irn.service_id()).await?
        }
    };
    let taxpayer = candidate.filter(|taxpayer| irn.has_service_id(&taxpayer.service_id));
    require_verified(state, taxpayer.ok_or_else(ApiError::invoice_not_found)?)
}

/// Returns the taxpayer that the call acts for. Returns `None` if an integrator's request names no taxpayer.
pub(crate) async fn for_body(
    state: &ApiState,
    caller: AppCaller,
    body: &Map<String, Value>,
) -> Result<Option<Taxpayer>, ApiError> {
    let reference = TaxpayerReference::from_body(body, caller.header_taxpayer);
    match (caller.caller, reference) {
        (Caller::Taxpayer(id), _) => find_by_id(state, id)
            .await?
            .map(|taxpayer| require_verified(state, taxpayer))
            .transpose(),
        (Caller::Integrator(_), None) => Ok(None),
        (Caller::Integrator(integrator), Some(reference)) => {
            let taxpayer = find_by_reference(state, integrator, reference)
                .await?
                .ok_or_else(ApiError::taxpayer_not_found)?;
            require_verified(state, taxpayer).map(Some)
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
    reference: TaxpayerReference<'_>,
) -> Result<Option<Taxpayer>, StoreError> {
    let store = &state.store;
    match reference {
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

/// Returns true if a call with a taxpayer's key names another taxpayer in `integrator_service_id`. An integrator's call
/// may have the integrator's own id in this field, so the field is not checked in such a call.
pub(crate) async fn names_another_taxpayer(
    state: &ApiState,
    caller: AppCaller,
    body: &Map<String, Value>,
) -> Result<bool, ApiError> {
    let (Caller::Taxpayer(id), Some(service_id)) = (caller.caller, integrator_service_id(body))
    else {
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
    /// Returns the first valid reference, in the order of the variants; `None` if there is none.
    fn from_body(
        body: &'a Map<String, Value>,
        header_taxpayer: Option<TaxpayerId>,
    ) -> Option<Self> {
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
            .or(header_taxpayer.map(Self::Id))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BUSINESS: &str = "bb99420d-d6bb-422c-b371-b9f6d6009aae";
    const IRN: &str = "INV001-94AD90FB-20261121";

    #[test]
    fn the_first_valid_reference_decides() {
        let header_taxpayer = Some(TaxpayerId(7));
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
        for (body, expected) in cases {
            assert_eq!(
                TaxpayerReference::from_body(body.as_object().unwrap(), header_taxpayer),
                expected,
                "{body}"
            );
        }
        assert_eq!(TaxpayerReference::from_body(&Map::new(), None), None);
    }
}
