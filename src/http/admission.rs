//! What stands before every path of `/v1`: who calls is looked up, once; what the caller may ask for in a time
//! is counted; and a write with an `Idempotency-Key` is answered once. Nothing is refused here for want of a key:
//! each surface does that in its own words.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::{Error, web};

use crate::http::auth::{self, Account};
use crate::http::error::ApiError;
use crate::http::limits::{self, Holder, Rare};
use crate::http::state::State;
use crate::http::{idempotency, ident};

/// What takes no key.
const PUBLIC: &str = "/v1/core/commons/invoice-categories";

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
pub(crate) struct Entrance {
    is_counted: bool,
    is_public: bool,
    is_reading: bool,
    rare: Option<Rare>,
}

/// Who was let in, to do what.
struct Visitor {
    account: Option<Account>,
    is_read: bool,
}

impl Entrance {
    pub(crate) fn of(pattern: &str) -> Self {
        Self {
            is_counted: pattern.starts_with("/v1/"),
            is_public: pattern == PUBLIC,
            is_reading: READING.contains(&pattern),
            rare: Rare::of(pattern),
        }
    }

    /// The middleware of a path. A method that the path does not take is refused behind it, whatever its key.
    pub(crate) async fn admit(
        self,
        request: ServiceRequest,
        next: Next<BoxBody>,
        is_taken: bool,
    ) -> Result<ServiceResponse<BoxBody>, Error> {
        let state = request.app_data::<web::Data<State>>().cloned();
        let mut response = match state.filter(|_| self.is_counted) {
            None => next.call(request).await?,
            Some(state) => match self.let_in(&state, &request).await {
                Err(error) => request.error_response(error),
                Ok(Visitor { account: Some(account), is_read: false }) if is_taken => {
                    idempotency::visit(&state, account, request, next).await?
                }
                Ok(_) => next.call(request).await?,
            },
        };
        let request = response.request().clone();
        limits::tell(&request, response.headers_mut());
        Ok(response)
    }

    async fn let_in(self, state: &State, request: &ServiceRequest) -> Result<Visitor, ApiError> {
        let account = if self.is_public { None } else { auth::recognised(request.request()).await? };
        let is_read = self.is_reading || matches!(*request.method(), Method::GET | Method::HEAD);
        let now = state.now();
        let holder = Holder::new(account, request.peer_addr().map(|peer| peer.ip()));
        let mut counted = state.limits.request(holder, is_read, now);
        let taxpayer = request.match_info().get("id").and_then(ident::number);
        if let (Ok(_), Some(rare), Some(account), Some(taxpayer)) = (&counted, self.rare, account, taxpayer) {
            counted = state.limits.rare(rare, (account, taxpayer), now);
        }
        limits::noted(request.request(), counted)?;
        // Here for what is answered from a stored answer, and in the extractors for every path.
        if account.is_some() && !is_read {
            auth::check_scope(request.request()).await?;
        }
        Ok(Visitor { account, is_read })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_and_what_is_rare_is_told_by_its_path() {
        let reading = Entrance::of("/v1/app/invoices/{irn}/confirm");
        assert!(reading.is_counted && reading.is_reading && !reading.is_public);
        let reads = |pattern, method| only_reads(Some(pattern), &method);
        assert!(reads("/v1/app/invoices/{irn}/confirm", Method::POST));
        assert!(reads("/v1/tax-payers/invoices", Method::GET) && reads("/ops/audit", Method::HEAD));
        assert!(!reads("/v1/tax-payers/invoices", Method::POST) && !reads(EFFECTIVE[0], Method::GET));
        assert!(!only_reads(None, &Method::GET));
        let create = Entrance::of("/v1/tax-payers/invoices");
        assert!(create.is_counted && !create.is_reading && create.rare.is_none());
        assert!(Entrance::of(PUBLIC).is_public);
        assert!(!Entrance::of("/health/live").is_counted);
        let rotate = Entrance::of("/v1/system-integrators/taxpayers/{id}/api-key/rotate");
        assert_eq!(rotate.rare, Some(Rare::Rotation));
    }
}
