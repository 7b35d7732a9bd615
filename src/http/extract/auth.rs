//! Finds the account to which the key in the header `x-api-key` belongs. A rotated key is refused at once, even if this
//! process has cached it.

use std::net::IpAddr;

use actix_web::http::header::HeaderMap;
use actix_web::{HttpMessage, HttpRequest};
use database::StoreError;

use crate::actors::taxpayer::acting::set_request_actor;
use crate::domain::access::api_key::{KeyOwner, KeyScope};
use crate::domain::access::caller::KeyKind;
use crate::domain::access::payer::PayingAccount;
use crate::domain::access::session::OperatorRole;
use crate::domain::kernel::audit::{Actor, ActorWithName};
use crate::domain::kernel::ids::{IntegratorId, KeyId};
use crate::http::extract::api_key_label::KeyName;
use crate::http::extract::key_refusal::{missing_key_message, refused_key_message};
use crate::http::limits;
use crate::http::middleware::client_address::client_address;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::keys::{self, ValidKey};

const API_KEY_HEADER: &str = "x-api-key";

/// The kinds of keys that one part of the API accepts, and the error code for any other key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ApiSurface {
    pub(crate) kinds: &'static [KeyKind],
    refused_key_code: ErrorCode,
}

pub(super) const TAXPAYERS: ApiSurface = ApiSurface {
    kinds: &[KeyKind::Taxpayer],
    refused_key_code: ErrorCode::InvalidApiKey,
};
pub(super) const INTEGRATORS: ApiSurface = ApiSurface {
    kinds: &[KeyKind::Integrator],
    refused_key_code: ErrorCode::InvalidApiKey,
};
pub(super) const OPERATORS: ApiSurface = ApiSurface {
    kinds: &[KeyKind::Operator],
    refused_key_code: ErrorCode::InvalidApiKey,
};
pub(super) const ACCESS_POINT: ApiSurface = ApiSurface {
    kinds: &[KeyKind::Taxpayer, KeyKind::Integrator],
    refused_key_code: ErrorCode::KeyNotRecognized,
};

impl ApiSurface {
    /// Returns the surface of a path; `None` if the path needs no key or its handler checks the key itself.
    pub(crate) fn for_pattern(pattern: &str) -> Option<Self> {
        const SURFACES: [(&str, ApiSurface); 5] = [
            ("/v1/tax-payers/", TAXPAYERS),
            ("/v1/system-integrators/", INTEGRATORS),
            ("/v1/app/", ACCESS_POINT),
            ("/v1/core/", ACCESS_POINT),
            ("/ops/", OPERATORS),
        ];
        let surface = SURFACES
            .iter()
            .find(|(prefix, _)| pattern.starts_with(prefix));
        surface.map(|(_, surface)| *surface)
    }

    /// Returns the error codes for a missing key and for a key that this surface does not accept.
    pub(crate) fn key_error_codes(self) -> [ErrorCode; 2] {
        [ErrorCode::Unauthenticated, self.refused_key_code]
    }

    /// Looks the key up once more after the body has arrived, because the key may have ended since the request began.
    pub(crate) async fn recheck_key(self, request: &HttpRequest) -> Result<KeyOwner, ApiError> {
        request.extensions_mut().remove::<ResolvedKey>();
        self.admit(request).await
    }

    /// Returns the error for a key that ended while its call waited.
    pub(crate) fn key_ended_error(self) -> ApiError {
        ApiError::new(
            self.refused_key_code,
            "The API key ended while the call waited. What it began goes on.",
        )
    }

    /// Returns the error for a refused key. `sent_kind` is the kind of the key; `None` if the key does not begin like a
    /// key of this service.
    fn refused_key_error(self, sent_kind: Option<KeyKind>) -> ApiError {
        ApiError::new(
            self.refused_key_code,
            refused_key_message(self.kinds, sent_kind),
        )
    }

    /// Returns the account of the key. Refuses a key of another kind, and a write with a read-only key.
    pub(crate) async fn admit(self, request: &HttpRequest) -> Result<KeyOwner, ApiError> {
        let account = recognise_account(request)
            .await?
            .filter(|account| self.kinds.contains(&account.kind));
        let Some(account) = account else {
            return Err(authentication_error(request, self));
        };
        require_write_scope(request).await?;
        request.extensions_mut().insert(account);
        Ok(account)
    }
}

/// The result of looking up the key, cached for the extractors of the request.
#[derive(Debug, Clone, Copy)]
struct ResolvedKey(Option<KeyRights>);

/// The account and the rights that the request's key gives.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyRights {
    account: KeyOwner,
    scope: KeyScope,
    /// The role of an operator; `None` for other accounts.
    pub(super) role: Option<OperatorRole>,
}

/// Returns the account of the request's key, which may be of any kind. Returns `None` if the request has no valid key.
pub(crate) async fn recognise_account(request: &HttpRequest) -> Result<Option<KeyOwner>, ApiError> {
    Ok(resolve_key(request).await?.map(|key| key.account))
}

/// Returns the account of the request's key, and the integrator whose limits the request also counts against. Returns
/// `None` before `recognise_account` has found a valid key.
pub(crate) fn paying_account(request: &HttpRequest) -> Option<PayingAccount> {
    request.extensions().get().copied()
}

/// Marks a logged request that a page of the console sends again for an account, without a key. The page has checked
/// that the person may do it. No caller from outside can set this mark.
#[derive(Debug, Clone)]
pub(crate) struct SentFromPage {
    pub(crate) account: PayingAccount,
    pub(crate) person: ActorWithName,
}

/// Lets the request act for the account of the page, as if it had one of the account's keys with full scope.
fn grant_page_rights(request: &HttpRequest, page: SentFromPage) -> KeyRights {
    let name = page.person.name.clone();
    let mut extensions = request.extensions_mut();
    extensions.insert(KeyName(name));
    extensions.insert(page.account);
    set_request_actor(page.person);
    KeyRights {
        account: page.account.owner,
        scope: KeyScope::Full,
        role: None,
    }
}

/// Returns the account and the rights that the request's key gives. Returns `None` if the request has no valid key.
pub(super) async fn resolve_key(request: &HttpRequest) -> Result<Option<KeyRights>, ApiError> {
    let cached = request.extensions().get::<ResolvedKey>().copied();
    if let Some(ResolvedKey(rights)) = cached {
        return Ok(rights);
    }
    let page = request.extensions().get::<SentFromPage>().cloned();
    if let Some(page) = page {
        let rights = Some(grant_page_rights(request, page));
        request.extensions_mut().insert(ResolvedKey(rights));
        return Ok(rights);
    }
    let rights = match key_from_header(request.headers())
        .ok()
        .and_then(|key| KeyKind::from_key(key).map(|kind| (kind, key)))
    {
        None => None,
        Some((kind, key)) => {
            let state = ApiState::from_request(request)?;
            let valid_key = find_key(request, state, kind, key).await?;
            if let Some(key) = &valid_key {
                state.key_usage.record_use(key, client_address(request));
                request.extensions_mut().insert(key.account);
                request.extensions_mut().insert(KeyName(key.name.clone()));
                set_request_actor(key_actor(key, client_address(request)));
            }
            valid_key.map(|key| KeyRights {
                account: key.account.owner,
                scope: key.scope,
                role: key.role,
            })
        }
    };
    request.extensions_mut().insert(ResolvedKey(rights));
    Ok(rights)
}

/// Looks a key up in the database. If the database does not answer, a read with a remembered operator key still
/// succeeds.
async fn find_key(
    request: &HttpRequest,
    state: &ApiState,
    kind: KeyKind,
    key: &str,
) -> Result<Option<ValidKey>, StoreError> {
    let remembered = match kind {
        KeyKind::Operator if request.method().is_safe() => {
            state.remembered_operators.remembered_key(key)
        }
        _ => None,
    };
    let lookup = keys::find_valid(&state.store, kind, key, state.now());
    let found = match remembered {
        None => lookup.await?,
        remembered => tokio::select! {
            biased;
            () = state.health.wait_for_database_fault() => return Ok(remembered),
            found = lookup => found?,
        },
    };
    if kind == KeyKind::Operator {
        state
            .remembered_operators
            .record_key_lookup(key, found.as_ref());
    }
    Ok(found)
}

/// Returns the actor that is recorded for changes made with this key.
fn key_actor(key: &ValidKey, address: Option<IpAddr>) -> ActorWithName {
    let actor = match key.account.owner.kind {
        KeyKind::Taxpayer => Actor::TaxpayerKey(KeyId::from_digest(&key.digest)),
        KeyKind::Integrator => Actor::Integrator(IntegratorId(key.account.owner.id)),
        KeyKind::Operator => Actor::Operator(key.account.owner.id),
    };
    ActorWithName {
        actor,
        name: key.name.clone(),
        address,
    }
}

/// Marks a request that changes nothing, so a read-only key is enough. The policy of the path adds this mark.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadOnlyRequest;

/// Refuses a write whose key may only read.
async fn require_write_scope(request: &HttpRequest) -> Result<(), ApiError> {
    match resolve_key(request).await? {
        Some(KeyRights {
            scope: KeyScope::ReadOnly,
            ..
        }) if request.extensions().get::<ReadOnlyRequest>().is_none() => Err(ApiError::new(
            ErrorCode::KeyReadOnly,
            "This API key may only read",
        )),
        _ => Ok(()),
    }
}

/// The reason why a request has no usable key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnusableKey {
    Missing,
    /// The request has two keys. A proxy may have checked only one of them, so this service uses neither.
    Twice,
    /// The key is not ASCII.
    Garbled,
}

/// Returns the API key in the headers of a request.
fn key_from_header(headers: &HeaderMap) -> Result<&str, UnusableKey> {
    let mut keys = headers.get_all(API_KEY_HEADER);
    match (keys.next(), keys.next()) {
        (None, _) => Err(UnusableKey::Missing),
        (Some(_), Some(_)) => Err(UnusableKey::Twice),
        (Some(key), None) if key.is_empty() => Err(UnusableKey::Missing),
        (Some(key), None) => key.to_str().map_err(|_| UnusableKey::Garbled),
    }
}

/// Returns the API key of a request, if it has one.
pub(crate) fn sent_key(request: &HttpRequest) -> Option<&str> {
    key_from_header(request.headers()).ok()
}

/// Logs a failed authentication, at a limited rate. The line names the kind of the key, never the key itself.
fn log_failed_authentication(request: &HttpRequest, state: &ApiState) {
    let Some(suppressed) = state.limits.admit_failure_log_line(state.now()) else {
        return;
    };
    let account = request
        .extensions()
        .get::<ResolvedKey>()
        .and_then(|ResolvedKey(rights)| rights.map(|key| key.account));
    let (reason, kind) = match key_from_header(request.headers()) {
        Err(UnusableKey::Missing) => ("no key", None),
        Err(UnusableKey::Twice) => ("two keys", None),
        Err(UnusableKey::Garbled) => ("malformed key", None),
        Ok(key) => match (KeyKind::from_key(key), account) {
            (None, _) => ("malformed key", None),
            (kind, None) => ("unknown key", kind),
            (kind, Some(_)) => ("key of another surface", kind),
        },
    };
    tracing::warn!(
        peer = client_address(request).map(tracing::field::display),
        route = request.match_pattern(),
        key_kind = kind.map(tracing::field::display),
        account = account.map(tracing::field::display),
        reason,
        suppressed,
        "an authentication failed"
    );
}

/// Returns true if the request has a key that belongs to no account. A request without a key, or with a valid key for
/// other paths, is no attempt to guess a key.
fn has_wrong_key(request: &HttpRequest) -> bool {
    let is_sent = key_from_header(request.headers()) != Err(UnusableKey::Missing);
    let resolved = request.extensions().get::<ResolvedKey>().copied();
    is_sent && resolved.is_none_or(|ResolvedKey(rights)| rights.is_none())
}

/// Logs a failed authentication, and counts a wrong key. Returns the error for a missing or refused key, or for too
/// many wrong keys from the client's address.
fn authentication_error(request: &HttpRequest, surface: ApiSurface) -> ApiError {
    let allowance = ApiState::from_request(request).map(|state| {
        log_failed_authentication(request, state);
        if !has_wrong_key(request) {
            return Ok(None);
        }
        state.traffic.count_failed_authentication();
        let peer = client_address(request);
        state
            .limits
            .count_failed_authentication(peer, state.now())
            .map(|_| None)
    });
    if let Err(error) = allowance.and_then(|allowance| limits::store_allowance(request, allowance))
    {
        return error;
    }
    match key_from_header(request.headers()) {
        Err(UnusableKey::Missing) => ApiError::new(
            ErrorCode::Unauthenticated,
            missing_key_message(request.headers()),
        ),
        Err(UnusableKey::Twice) => ApiError::new(
            ErrorCode::Unauthenticated,
            "The x-api-key header must be sent once",
        ),
        Err(UnusableKey::Garbled) => surface.refused_key_error(None),
        Ok(key) => surface.refused_key_error(KeyKind::from_key(key)),
    }
}
