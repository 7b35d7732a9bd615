//! Who calls: the `x-api-key` becomes one of the callers of the domain, or a refusal. The key is looked up
//! at every request, so that a rotated one is refused at once. The surface decides the words of a refusal.

use std::fmt;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures_util::future::LocalBoxFuture;

use crate::domain::api_key::KeyScope;
use crate::domain::caller::{Caller, IntegratorCaller, KeyKind, OperatorCaller, TaxpayerCaller};
use crate::domain::ids::{IntegratorId, TaxpayerId};
use crate::http::admission;
use crate::http::code::Code;
use crate::http::error::ApiError;
use crate::http::limits;
use crate::http::state::State;
use crate::store::keys;

const API_KEY: &str = "x-api-key";

/// Whose key a request carried, as the access log names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Account {
    kind: KeyKind,
    id: i64,
}

impl Account {
    pub(crate) fn owner(self) -> (KeyKind, i64) {
        (self.kind, self.id)
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.id)
    }
}

/// What was found for the key of a request; it is looked up once.
#[derive(Debug, Clone, Copy)]
struct Recognised(Option<(Account, KeyScope)>);

/// The account of the key, whatever its kind; none where there is no key, or nobody has it.
pub(crate) async fn recognised(request: &HttpRequest) -> Result<Option<Account>, ApiError> {
    Ok(resolved(request).await?.map(|(account, _)| account))
}

/// The account and the scope of the key.
async fn resolved(request: &HttpRequest) -> Result<Option<(Account, KeyScope)>, ApiError> {
    let known = request.extensions().get::<Recognised>().copied();
    if let Some(Recognised(account)) = known {
        return Ok(account);
    }
    let key = request.headers().get(API_KEY).and_then(|value| value.to_str().ok());
    let account = match key.and_then(|key| KeyKind::of(key).map(|kind| (kind, key))) {
        None => None,
        Some((kind, key)) => {
            let state = state(request)?;
            let found = keys::valid(&state.store, kind, key, state.now()).await?;
            if let Some(key) = &found {
                state.key_usage.note(key);
            }
            found.map(|key| (Account { kind, id: key.owner.id }, key.scope))
        }
    };
    request.extensions_mut().insert(Recognised(account));
    Ok(account)
}

fn state(request: &HttpRequest) -> Result<&web::Data<State>, ApiError> {
    request.app_data::<web::Data<State>>().ok_or_else(|| ApiError::internal("no state"))
}

/// Refuses a write with a key that may only read.
pub(crate) async fn check_scope(request: &HttpRequest) -> Result<(), ApiError> {
    let is_read = || admission::only_reads(request.match_pattern().as_deref(), request.method());
    match resolved(request).await? {
        Some((_, KeyScope::ReadOnly)) if !is_read() => {
            Err(ApiError::new(Code::KeyReadOnly, "This API key may only read"))
        }
        _ => Ok(()),
    }
}

/// The account of the key, if it is of one of these kinds; the code says what else there is.
async fn account(request: HttpRequest, kinds: &[KeyKind], otherwise: Code) -> Result<Account, ApiError> {
    let account = recognised(&request).await?.filter(|account| kinds.contains(&account.kind));
    let Some(account) = account else { return Err(failed(&request, otherwise)) };
    check_scope(&request).await?;
    request.extensions_mut().insert(account);
    Ok(account)
}

/// Why a request is not authenticated: for want of a good key or, after too many of those, for coming again.
fn failed(request: &HttpRequest, otherwise: Code) -> ApiError {
    let peer = request.peer_addr().map(|peer| peer.ip());
    let counted =
        state(request).map(|state| state.limits.failed_authentication(peer, state.now()).map(|_| None));
    if let Err(error) = counted.and_then(|counted| limits::noted(request, counted)) {
        return error;
    }
    match request.headers().get(API_KEY).filter(|value| !value.is_empty()) {
        None => ApiError::new(Code::Unauthenticated, "The x-api-key header is required"),
        Some(_) => ApiError::new(otherwise, "The API key is not valid here"),
    }
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
