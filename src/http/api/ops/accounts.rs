//! Integrators and operators with their API keys. A rotation or revocation takes effect at once on every replica.

use std::net::IpAddr;

use actix_web::web;
use secrecy::ExposeSecret;

use crate::domain::access::api_key::{KeyOwner, NewKey};
use crate::domain::access::caller::{KeyKind, OpsAdmin, OpsViewer};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::ids::parse_id;
use crate::http::extract::body::Body;
use crate::http::forms::query::Query;
use crate::http::forms::{key_terms, reader};
use crate::http::key_generation;
use crate::http::middleware::client_address::ClientAddress;
use crate::http::openapi::{OperationDoc, doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::account::{AccountView, NewApiKey, RevokedKeys};
use crate::http::views::paginator::Paginator;
use crate::store::accounts;
use crate::store::accounts::{AccountChange, KeyRotationOutcome, access};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/integrators").get(list_integrators, || {
            doc("list_integrators", "Integrators with their keys")
                .with_page_response::<AccountView<'_>>("Integrators retrieved successfully")
                .with_paging("100 at most")
        }),
        path("/ops/integrators/{id}/api-key/rotate").post(rotate_integrator_key, || {
            key_rotation_doc("rotate_integrator_key", "Give an integrator a new key")
                .with_errors(&[ErrorCode::IntegratorNotFound])
        }),
        path("/ops/integrators/{id}/api-key/revoke").post(revoke_integrator_keys, || {
            key_revocation_doc(
                "revoke_integrator_keys",
                "Revoke an integrator's keys and end its sessions",
            )
            .with_errors(&[ErrorCode::IntegratorNotFound])
        }),
        path("/ops/operators").get(list_operators, || {
            doc("list_operators", "Operators with their keys")
                .with_page_response::<AccountView<'_>>("Operators retrieved successfully")
                .with_paging("100 at most")
        }),
        path("/ops/operators/{id}/api-key/rotate").post(rotate_operator_key, || {
            key_rotation_doc("rotate_operator_key", "Give an operator a new key")
                .with_errors(&[ErrorCode::OperatorNotFound])
        }),
        path("/ops/operators/{id}/api-key/revoke").post(revoke_operator_keys, || {
            key_revocation_doc(
                "revoke_operator_keys",
                "Revoke an operator's keys and end its sessions",
            )
            .with_errors(&[ErrorCode::OperatorNotFound])
        }),
    ]
}

fn key_rotation_doc(name: &'static str, summary: &'static str) -> OperationDoc {
    doc(name, summary)
        .with_note("The new key is shown only here. Keys that it replaces end at once, or after `overlap_s`.")
        .with_optional_body(key_terms::read_rotation, example!("rotate_account_key"))
        .with_response::<NewApiKey<'_>>(200, "API key rotated successfully")
        .with_errors(&[ErrorCode::InvalidTransition])
}

fn key_revocation_doc(name: &'static str, summary: &'static str) -> OperationDoc {
    doc(name, summary)
        .with_note(
            "With `taxpayer_keys` an integrator's taxpayers lose theirs too. Whoever knows the password can sign in \
             again; disable the account to keep everybody out.",
        )
        .with_optional_body(key_terms::read_revocation, example!("revoke_keys"))
        .with_response::<RevokedKeys>(200, "API keys revoked successfully")
}

const PER_PAGE_DEFAULT: u64 = 15;

async fn list_integrators(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    list_accounts(
        &state,
        KeyKind::Integrator,
        "Integrators retrieved successfully",
        &query,
    )
    .await
}

async fn list_operators(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    list_accounts(
        &state,
        KeyKind::Operator,
        "Operators retrieved successfully",
        &query,
    )
    .await
}

async fn list_accounts(
    state: &ApiState,
    kind: KeyKind,
    message: &'static str,
    query: &Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let (holders, total) = accounts::load_account_page(&state.store, kind, page).await?;
    let items = holders
        .iter()
        .map(|holder| AccountView::new(holder, state.now()))
        .collect();
    Ok(ApiResponse::ok(message, Paginator::new(page, total, items)))
}

/// Declares the handlers that rotate a key and revoke the keys: of an integrator (POST
/// /ops/integrators/{id}/api-key/rotate and /revoke) and of an operator (POST /ops/operators/{id}/api-key/rotate and
/// /revoke).
macro_rules! key_handlers {
    ($($kind:ident: $rotate:ident, $revoke:ident;)+) => {$(
        async fn $rotate(
            state: web::Data<ApiState>,
            OpsAdmin(operator): OpsAdmin,
            ClientAddress(address): ClientAddress,
            id: web::Path<String>,
            body: Body,
        ) -> Result<ApiResponse, ApiError> {
            let owner = parse_owner(KeyKind::$kind, &id)?;
            rotate_key(&state, operator, address, owner, body).await
        }

        async fn $revoke(
            state: web::Data<ApiState>,
            OpsAdmin(operator): OpsAdmin,
            ClientAddress(address): ClientAddress,
            id: web::Path<String>,
            body: Body,
        ) -> Result<ApiResponse, ApiError> {
            let owner = parse_owner(KeyKind::$kind, &id)?;
            revoke_keys(&state, operator, address, owner, body).await
        }
    )+};
}

key_handlers! {
    Integrator: rotate_integrator_key, revoke_integrator_keys;
    Operator: rotate_operator_key, revoke_operator_keys;
}

async fn rotate_key(
    state: &ApiState,
    operator_id: i64,
    address: Option<IpAddr>,
    owner: KeyOwner,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        key_terms::read_rotation,
    )?;
    let terms = form.value.terms;
    let now = state.now();
    key_terms::check_expiry(&terms, now)?;
    let key_text = key_generation::generate_key(owner.kind)?;
    let change = AccountChange {
        owner,
        by: Actor::Operator(operator_id),
        reason: form.value.reason,
        address,
        now,
    };
    let key = NewKey::new(key_text.clone(), terms).with_name(form.value.name);
    match accounts::rotate_key(&state.store, change, &key).await? {
        KeyRotationOutcome::Done => {}
        KeyRotationOutcome::Unknown => return Err(account_not_found(owner.kind)),
        KeyRotationOutcome::Disabled => {
            let message = "The account is disabled. Enable it first.";
            return Err(ApiError::new(ErrorCode::InvalidTransition, message));
        }
    }
    let data = NewApiKey {
        id: owner.id,
        api_key: key_text.expose_secret(),
    };
    Ok(ApiResponse::ok("API key rotated successfully", data)
        .forbid_storing()
        .warn(&form.warnings))
}

async fn revoke_keys(
    state: &ApiState,
    operator_id: i64,
    address: Option<IpAddr>,
    owner: KeyOwner,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object_or_empty().await?;
    let form = reader::read(&body, &state.catalog.get(), key_terms::read_revocation)?;
    let includes_taxpayers = form.value.includes_taxpayers;
    let by = Actor::Operator(operator_id);
    let reason = form.value.reason;
    let change = AccountChange {
        owner,
        by,
        reason,
        address,
        now: state.now(),
    };
    let counts = access::revoke_account_access(&state.store, change, includes_taxpayers).await?;
    let counts = counts.ok_or_else(|| account_not_found(owner.kind))?;
    let data = RevokedKeys::new(owner.id, counts);
    Ok(ApiResponse::ok("API keys revoked successfully", data).warn(&form.warnings))
}

pub(super) fn parse_owner(kind: KeyKind, text: &str) -> Result<KeyOwner, ApiError> {
    parse_id(text)
        .map(|id| KeyOwner { kind, id })
        .ok_or_else(|| account_not_found(kind))
}

pub(crate) fn account_not_found(kind: KeyKind) -> ApiError {
    match kind {
        KeyKind::Operator => ApiError::new(ErrorCode::OperatorNotFound, "Operator not found"),
        KeyKind::Integrator | KeyKind::Taxpayer => {
            ApiError::new(ErrorCode::IntegratorNotFound, "Integrator not found")
        }
    }
}
