//! What stands before every path of `/v1`, all of it before a byte of a body is read: who calls is looked up, once;
//! what the caller may ask for in a time is counted; its key must be one that the surface takes; it may have so many
//! calls under way. Then a write with an `Idempotency-Key` is answered once.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::{Error, web};

use crate::http::extract::auth::{self, Account, PUBLIC, Surface};
use crate::http::extract::path_ids;
use crate::http::idempotency;
use crate::http::limits;
use crate::http::limits::CallKind;
use crate::http::limits::CallSlot;
use crate::http::limits::RateKey;
use crate::http::limits::SensitiveOp;
use crate::http::middleware::client_address;
use crate::http::respond::error::ApiError;
use crate::http::state::{ApiSettings, ApiState};

/// The path whose bodies hold many invoices.
const BULK: &str = "/v1/tax-payers/invoices/bulk";

/// What only reads although it may be posted: counted as a read, and no `Idempotency-Key` is looked at.
const READING: [&str; 5] = [
    "/v1/tax-payers/invoices/get-by-unique-no",
    "/v1/tax-payers/invoices/get-supplier-invoice",
    "/v1/app/invoices/validate",
    "/v1/app/invoices/{irn}/confirm",
    "/v1/app/invoices/{irn}/download",
];

/// A read by its method that changes something all the same.
const EFFECTIVE: [&str; 1] = ["/v1/system-integrators/taxpayers/{id}/webhook/test"];

/// Whether a request changes nothing, so that a key that may only read is enough for it.
pub(crate) fn only_reads(pattern: Option<&str>, method: &Method) -> bool {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    pattern.is_some_and(|pattern| READING.contains(&pattern) || is_read && !EFFECTIVE.contains(&pattern))
}

/// What a path is, as far as admission goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoutePolicy {
    pattern: &'static str,
    is_counted: bool,
    is_reading: bool,
    is_for_operators: bool,
    surface: Option<Surface>,
    rare: Option<SensitiveOp>,
}

/// Who was let in, to do what.
struct Admitted {
    account: Option<Account>,
    is_read: bool,
    /// Held until the call is over.
    _call: Option<CallSlot>,
}

impl RoutePolicy {
    pub(crate) fn of(pattern: &'static str) -> Self {
        Self {
            pattern,
            is_counted: pattern.starts_with("/v1/"),
            is_reading: READING.contains(&pattern),
            is_for_operators: pattern.starts_with("/ops/") || pattern == "/metrics",
            surface: Surface::of(pattern),
            rare: SensitiveOp::of(pattern),
        }
    }

    /// The middleware of a path. A method that the path does not take is refused behind it, whatever its key.
    pub(crate) async fn admit(
        self,
        request: ServiceRequest,
        next: Next<BoxBody>,
        is_taken: bool,
    ) -> Result<ServiceResponse<BoxBody>, Error> {
        let state = request.app_data::<web::Data<ApiState>>().cloned();
        if state.as_ref().is_some_and(|state| self.is_elsewhere(&request, &state.settings)) {
            return Ok(request.error_response(ApiError::route_not_found()));
        }
        let mut response = match state.filter(|_| self.is_counted) {
            None => next.call(request).await?,
            Some(state) => match self.authorize(&state, &request, is_taken).await {
                Err(error) => request.error_response(error),
                Ok(Admitted { account: Some(account), is_read: false, _call }) if is_taken => {
                    let body_bytes_max = self.body_bytes_max(&state.settings);
                    idempotency::visit(&state, (account, body_bytes_max), request, next).await?
                }
                Ok(_visitor) => next.call(request).await?,
            },
        };
        let request = response.request().clone();
        limits::tell(&request, response.headers_mut());
        Ok(response)
    }

    async fn authorize(
        self,
        state: &ApiState,
        request: &ServiceRequest,
        is_taken: bool,
    ) -> Result<Admitted, ApiError> {
        let account = match self.pattern {
            PUBLIC => None,
            _ => auth::recognised(request.request()).await?,
        };
        let is_read = self.is_reading || matches!(*request.method(), Method::GET | Method::HEAD);
        let now = state.now();
        let holder = RateKey::new(account, client_address::of(request.request()));
        let mut counted = state.limits.request(holder, is_read, now);
        let taxpayer = request.match_info().get("id").and_then(path_ids::number);
        if let (Ok(_), Some(rare), Some(account), Some(taxpayer)) = (&counted, self.rare, account, taxpayer) {
            counted = state.limits.rare(rare, (account, taxpayer), now);
        }
        limits::noted(request.request(), counted)?;
        if let (Some(surface), true) = (self.surface, is_taken) {
            surface.admit(request.request()).await?;
        }
        let kind = CallKind::of(self.pattern, is_read);
        let call = account.map(|account| state.calls.start(account, kind)).transpose()?;
        Ok(Admitted { account, is_read, _call: call })
    }

    /// Whether the path is served on another listener. Operators' paths have one of their own where the settings say
    /// so; the probes are answered on both.
    fn is_elsewhere(self, request: &ServiceRequest, settings: &ApiSettings) -> bool {
        let listener = request.app_config().local_addr();
        let is_probe = self.pattern.starts_with("/health/");
        settings.ops_address.is_some_and(|ops| !is_probe && (listener == ops) != self.is_for_operators)
    }

    /// The longest body that the path takes.
    fn body_bytes_max(self, settings: &ApiSettings) -> usize {
        if self.pattern == BULK { settings.bulk_bytes_max } else { settings.body_bytes_max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_and_what_is_rare_is_told_by_its_path() {
        let reading = RoutePolicy::of("/v1/app/invoices/{irn}/confirm");
        assert!(reading.is_counted && reading.is_reading && reading.surface.is_some());
        let reads = |pattern, method| only_reads(Some(pattern), &method);
        assert!(reads("/v1/app/invoices/{irn}/confirm", Method::POST));
        assert!(reads("/v1/tax-payers/invoices", Method::GET) && reads("/ops/audit", Method::HEAD));
        assert!(!reads("/v1/tax-payers/invoices", Method::POST) && !reads(EFFECTIVE[0], Method::GET));
        assert!(!only_reads(None, &Method::GET));
        let create = RoutePolicy::of("/v1/tax-payers/invoices");
        assert!(create.is_counted && !create.is_reading && create.rare.is_none());
        assert!(RoutePolicy::of(PUBLIC).is_counted && RoutePolicy::of(PUBLIC).surface.is_none());
        assert!(!RoutePolicy::of("/health/live").is_counted);
        let rotate = RoutePolicy::of("/v1/system-integrators/taxpayers/{id}/api-key/rotate");
        assert_eq!(rotate.rare, Some(SensitiveOp::Rotation));
    }
}
