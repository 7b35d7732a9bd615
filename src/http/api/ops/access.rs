//! Disables and enables integrators and operators, removes operators, and changes an operator's role. The keys,
//! sessions and unfinished sign-ins of a disabled or removed account end at once, on every replica.

use std::net::IpAddr;

use actix_web::web;

use crate::domain::access::api_key::KeyOwner;
use crate::domain::access::caller::{KeyKind, OpsAdmin};
use crate::domain::access::session::OperatorRole;
use crate::domain::kernel::audit::Actor;
use crate::http::api::ops::accounts::{account_not_found, parse_owner};
use crate::http::extract::body::Body;
use crate::http::forms::{key_terms, reader, reason, roles};
use crate::http::middleware::client_address::ClientAddress;
use crate::http::openapi::{OperationDoc, doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::account::{ChangedRole, EnabledAccount, RevokedKeys};
use crate::store::accounts::access::{self, AccessChangeOutcome};
use crate::store::accounts::{AccountChange, RevokedCounts};

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/integrators/{id}/disable").post(disable_integrator, || {
            revoked_keys_doc(
                "disable_integrator",
                "Disable an integrator",
                "Integrator disabled successfully",
            )
            .with_note(
                "Its password is refused until it is enabled. Its \
                 taxpayers go on; with `taxpayer_keys` their keys end.",
            )
            .with_optional_body(key_terms::read_revocation, example!("revoke_keys"))
            .with_errors(&[ErrorCode::IntegratorNotFound])
        }),
        path("/ops/integrators/{id}/enable").post(enable_integrator, || {
            enabled_account_doc(
                "enable_integrator",
                "Enable a disabled integrator",
                "Integrator enabled successfully",
            )
            .with_errors(&[ErrorCode::IntegratorNotFound])
        }),
        path("/ops/operators/{id}/disable").post(disable_operator, || {
            revoked_keys_doc(
                "disable_operator",
                "Disable an operator",
                "Operator disabled successfully",
            )
            .with_note("The operator's password is refused until it is enabled.")
            .with_optional_body(reason::read, example!("reason"))
            .with_errors(&[ErrorCode::OperatorNotFound, ErrorCode::InvalidTransition])
        }),
        path("/ops/operators/{id}/enable").post(enable_operator, || {
            enabled_account_doc(
                "enable_operator",
                "Enable a disabled operator",
                "Operator enabled successfully",
            )
            .with_errors(&[ErrorCode::OperatorNotFound])
        }),
        path("/ops/operators/{id}/remove").post(remove_operator, || {
            revoked_keys_doc(
                "remove_operator",
                "Remove an operator",
                "Operator removed successfully",
            )
            .with_optional_body(reason::read, example!("reason"))
            .with_errors(&[ErrorCode::OperatorNotFound, ErrorCode::InvalidTransition])
        }),
        path("/ops/operators/{id}/role").post(set_operator_role, || {
            doc("set_operator_role", "Give an operator another role")
                .with_note(
                    "It is in force for the operator's keys and sessions from \
                     the next request on.",
                )
                .with_body(roles::read_operator_role, example!("set_operator_role"))
                .with_response::<ChangedRole>(200, "Operator role changed successfully")
                .with_errors(&[ErrorCode::OperatorNotFound, ErrorCode::InvalidTransition])
        }),
    ]
}

fn revoked_keys_doc(
    name: &'static str,
    summary: &'static str,
    message: &'static str,
) -> OperationDoc {
    doc(name, summary).with_response::<RevokedKeys>(200, message)
}

fn enabled_account_doc(
    name: &'static str,
    summary: &'static str,
    message: &'static str,
) -> OperationDoc {
    doc(name, summary)
        .with_note(
            "It signs in with its password again. Keys and sessions that were ended stay ended.",
        )
        .with_optional_body(reason::read, example!("reason"))
        .with_response::<EnabledAccount>(200, message)
}

/// POST /ops/integrators/{id}/disable: disables an integrator.
async fn disable_integrator(
    state: web::Data<ApiState>,
    OpsAdmin(operator): OpsAdmin,
    ClientAddress(address): ClientAddress,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object_or_empty().await?;
    let form = reader::read(&body, &state.catalog.get(), key_terms::read_revocation)?;
    let includes_taxpayers = form.value.includes_taxpayers;
    let owner = parse_owner(KeyKind::Integrator, &id)?;
    let change = account_change(&state, operator, address, owner, form.value.reason);
    let outcome = access::disable_account(&state.store, change, includes_taxpayers).await?;
    let message = match outcome {
        AccessChangeOutcome::AlreadySo => "Integrator was already disabled",
        _ => "Integrator disabled successfully",
    };
    let data = RevokedKeys::new(owner.id, ended_keys_and_sessions(outcome, owner)?);
    Ok(ApiResponse::ok(message, data).warn(&form.warnings))
}

/// POST /ops/operators/{id}/disable: disables an operator.
async fn disable_operator(
    state: web::Data<ApiState>,
    OpsAdmin(operator): OpsAdmin,
    ClientAddress(address): ClientAddress,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        reason::read,
    )?;
    let owner = parse_owner(KeyKind::Operator, &id)?;
    let change = account_change(&state, operator, address, owner, form.value.0);
    let outcome = access::disable_account(&state.store, change, false).await?;
    let message = match outcome {
        AccessChangeOutcome::AlreadySo => "Operator was already disabled",
        _ => "Operator disabled successfully",
    };
    let data = RevokedKeys::new(owner.id, ended_keys_and_sessions(outcome, owner)?);
    Ok(ApiResponse::ok(message, data).warn(&form.warnings))
}

/// POST /ops/operators/{id}/remove: removes an operator.
async fn remove_operator(
    state: web::Data<ApiState>,
    OpsAdmin(operator): OpsAdmin,
    ClientAddress(address): ClientAddress,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        reason::read,
    )?;
    let owner = parse_owner(KeyKind::Operator, &id)?;
    let change = account_change(&state, operator, address, owner, form.value.0);
    let outcome = access::remove_operator(&state.store, change).await?;
    let data = RevokedKeys::new(owner.id, ended_keys_and_sessions(outcome, owner)?);
    Ok(ApiResponse::ok("Operator removed successfully", data).warn(&form.warnings))
}

/// POST /ops/operators/{id}/role: gives an operator another role.
async fn set_operator_role(
    state: web::Data<ApiState>,
    OpsAdmin(operator): OpsAdmin,
    ClientAddress(address): ClientAddress,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        roles::read_operator_role,
    )?;
    let roles::RoleChange { role, reason } = form.value;
    let owner = parse_owner(KeyKind::Operator, &id)?;
    let change = account_change(&state, operator, address, owner, reason);
    let outcome = access::set_operator_role(&state.store, change, role).await?;
    ended_keys_and_sessions(outcome, owner)?;
    let message = match outcome {
        AccessChangeOutcome::AlreadySo => "Operator already had this role",
        _ => "Operator role changed successfully",
    };
    let data = ChangedRole { id: owner.id, role };
    Ok(ApiResponse::ok(message, data).warn(&form.warnings))
}

/// POST /ops/integrators/{id}/enable: enables a disabled integrator.
async fn enable_integrator(
    state: web::Data<ApiState>,
    OpsAdmin(operator): OpsAdmin,
    ClientAddress(address): ClientAddress,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let owner = parse_owner(KeyKind::Integrator, &id)?;
    enable_account(&state, operator, address, owner, body).await
}

/// POST /ops/operators/{id}/enable: enables a disabled operator.
async fn enable_operator(
    state: web::Data<ApiState>,
    OpsAdmin(operator): OpsAdmin,
    ClientAddress(address): ClientAddress,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let owner = parse_owner(KeyKind::Operator, &id)?;
    enable_account(&state, operator, address, owner, body).await
}

async fn enable_account(
    state: &ApiState,
    operator: i64,
    address: Option<IpAddr>,
    owner: KeyOwner,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        reason::read,
    )?;
    let change = account_change(state, operator, address, owner, form.value.0);
    let outcome = access::enable_account(&state.store, change).await?;
    ended_keys_and_sessions(outcome, owner)?;
    let is_newly_enabled = outcome != AccessChangeOutcome::AlreadySo;
    let message = match (owner.kind, is_newly_enabled) {
        (KeyKind::Operator, true) => "Operator enabled successfully",
        (KeyKind::Operator, false) => "Operator was not disabled",
        (_, true) => "Integrator enabled successfully",
        (_, false) => "Integrator was not disabled",
    };
    Ok(ApiResponse::ok(message, EnabledAccount { id: owner.id }).warn(&form.warnings))
}

fn account_change(
    state: &ApiState,
    operator: i64,
    address: Option<IpAddr>,
    owner: KeyOwner,
    reason: Option<String>,
) -> AccountChange {
    AccountChange {
        owner,
        by: Actor::Operator(operator),
        reason,
        address,
        now: state.now(),
    }
}

/// Returns how many keys and sessions a change ended. Fails if the change was refused.
pub(crate) fn ended_keys_and_sessions(
    outcome: AccessChangeOutcome,
    owner: KeyOwner,
) -> Result<RevokedCounts, ApiError> {
    match outcome {
        AccessChangeOutcome::Done(counts) => Ok(counts),
        AccessChangeOutcome::AlreadySo => Ok(RevokedCounts::default()),
        AccessChangeOutcome::Unknown => Err(account_not_found(owner.kind)),
        AccessChangeOutcome::LastAdmin => {
            let admin = OperatorRole::Admin;
            let message = format!(
                "This would leave no enabled operator with the role \
                 {admin}. Make another one first."
            );
            Err(ApiError::new(ErrorCode::InvalidTransition, message))
        }
    }
}
