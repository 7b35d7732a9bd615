//! The callers of the API as extractors: a handler with such a parameter runs only for a key of that kind.

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use futures_util::future::LocalBoxFuture;

use crate::domain::access::caller::{
    Caller, IntegratorCaller, KeyKind, OpsAdmin, OpsOperator, OpsViewer, TaxpayerCaller,
};
use crate::domain::access::session::OperatorRole;
use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::http::extract::auth::{ACCESS_POINT, INTEGRATORS, OPERATORS, TAXPAYERS, resolve_key};
use crate::http::extract::role::{self, NeedsRole};
use crate::http::respond::error::ApiError;

/// Makes `$caller` an extractor: `$surface` checks the request's key, then `$make` converts the account of the key.
macro_rules! caller_extractor {
    ($caller:ty, $surface:expr, $make:expr) => {
        impl FromRequest for $caller {
            type Error = ApiError;
            type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

            fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
                let request = request.clone();
                Box::pin(async move { $surface.admit(&request).await.map($make) })
            }
        }
    };
}

caller_extractor!(TaxpayerCaller, TAXPAYERS, |account| Self(TaxpayerId(
    account.id
)));
caller_extractor!(IntegratorCaller, INTEGRATORS, |account| Self(IntegratorId(
    account.id
)));
caller_extractor!(Caller, ACCESS_POINT, |account| match account.kind {
    KeyKind::Integrator => Self::Integrator(IntegratorId(account.id)),
    KeyKind::Taxpayer | KeyKind::Operator => Self::Taxpayer(TaxpayerId(account.id)),
});

/// Returns the id of the operator who owns the request's key. Fails if the operator's role is below `least_role`.
async fn admit_operator(request: &HttpRequest, least_role: OperatorRole) -> Result<i64, ApiError> {
    let account = OPERATORS.admit(request).await?;
    let role = resolve_key(request).await?.and_then(|key| key.role);
    if role.is_none_or(|role| role < least_role) {
        return Err(role::insufficient_role_error(least_role));
    }
    Ok(account.id)
}

/// Makes each type an extractor, which accepts operators with at least the role beside it.
macro_rules! operator_extractors {
    ($($right:ident = $least:expr;)+) => {$(
        impl FromRequest for $right {
            type Error = ApiError;
            type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

            fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
                let request = request.clone();
                Box::pin(async move { admit_operator(&request, $least).await.map(Self) })
            }
        }

        impl NeedsRole for $right {
            const LEAST_ROLE: Option<OperatorRole> = Some($least);
        }
    )+};
}

operator_extractors! {
    OpsViewer = OperatorRole::Viewer;
    OpsOperator = OperatorRole::Operator;
    OpsAdmin = OperatorRole::Admin;
}
