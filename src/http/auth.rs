//! Who calls: the `x-api-key` becomes one of the callers of the domain, or a refusal. The key is looked up
//! at every request, so that a rotated one is refused at once. The surface decides the words of a refusal.

use std::fmt;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures_util::future::LocalBoxFuture;

use crate::domain::caller::{Caller, IntegratorCaller, KeyKind, OperatorCaller, TaxpayerCaller};
use crate::domain::ids::{IntegratorId, TaxpayerId};
use crate::http::code::Code;
use crate::http::error::ApiError;
use crate::http::state::State;
use crate::store::keys;

const API_KEY: &str = "x-api-key";

/// Whose key a request carried, as the access log names it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    kind: KeyKind,
    id: i64,
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}

/// The account of the key, if it is of one of these kinds; the code says what else there is.
async fn account(request: HttpRequest, kinds: &[KeyKind], otherwise: Code) -> Result<Account, ApiError> {
    let header = request.headers().get(API_KEY).filter(|value| !value.is_empty());
    let Some(header) = header else {
        return Err(ApiError::new(Code::Unauthenticated, "The x-api-key header is required"));
    };
    let unknown = || ApiError::new(otherwise, "The API key is not valid here");
    let key = header.to_str().map_err(|_| unknown())?;
    let kind = KeyKind::of(key).filter(|kind| kinds.contains(kind)).ok_or_else(unknown)?;
    let state = request.app_data::<web::Data<State>>().ok_or_else(|| ApiError::internal("no state"))?;
    let id = keys::owner(&state.store, kind, key).await?.ok_or_else(unknown)?;
    let account = Account { kind, id };
    request.extensions_mut().insert(account);
    Ok(account)
}

/// Declares how a caller is extracted: the kinds of keys, the code for any other key, the value made of it.
macro_rules! caller {
    ($caller:ty, $kinds:expr, $otherwise:expr, $make:expr) => {
        impl FromRequest for $caller {
            type Error = ApiError;
            type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

            fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
                let request = request.clone();
                Box::pin(async move { account(request, &$kinds, $otherwise).await.map($make) })
            }
        }
    };
}

caller!(TaxpayerCaller, [KeyKind::Taxpayer], Code::InvalidApiKey, |account| Self(TaxpayerId(account.id)));
caller!(IntegratorCaller, [KeyKind::Integrator], Code::InvalidApiKey, |account| {
    Self(IntegratorId(account.id))
});
caller!(OperatorCaller, [KeyKind::Operator], Code::InvalidApiKey, |account| Self(account.id));
caller!(Caller, [KeyKind::Taxpayer, KeyKind::Integrator], Code::KeyNotRecognized, |account| {
    match account.kind {
        KeyKind::Integrator => Self::Integrator(IntegratorId(account.id)),
        KeyKind::Taxpayer | KeyKind::Operator => Self::Taxpayer(TaxpayerId(account.id)),
    }
});
