//! Actions that operators may take in the development environment only, to see how the service copes with a panic.

use actix_web::web;
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::access::caller::OpsAdmin;
use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::extract::body::Body;
use crate::http::forms::{panic_request, reader};
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;
use crate::store::operations::audit;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/development/panic").post(request_panics, || {
        doc("order_panic", "Make the actor of a taxpayer panic, in development")
            .with_note(
                "It panics at the next command of the taxpayer. After one panic the command is executed again and succeeds; \
                 with two it goes into the quarantine. Where `environment` is production, this path is not found.",
            )
            .with_body(panic_request::read, example!("panic_request"))
            .with_response::<RequestedPanics>(200, "Panic ordered successfully")
            .with_errors(&[ErrorCode::RouteNotFound, ErrorCode::TaxpayerNotFound])
    })]
}

#[derive(Debug, Serialize, ToSchema)]
struct RequestedPanics {
    /// The taxpayer whose actor panics at its next command.
    taxpayer_id: i64,
    /// The number of times that it panics.
    panics: u32,
}

/// POST /ops/development/panic: makes the actor of a taxpayer panic at its next command.
async fn request_panics(
    state: web::Data<ApiState>,
    OpsAdmin(operator_id): OpsAdmin,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        panic_request::read,
    )?;
    let requested = RequestedPanics {
        taxpayer_id: form.value.taxpayer_id.0,
        panics: form.value.panics,
    };
    let by = OperatorRequest {
        operator_id,
        reason: form.value.reason,
    };
    schedule_panics(&state, form.value.taxpayer_id, requested.panics, &by).await?;
    Ok(ApiResponse::ok("Panic ordered successfully", requested).warn(&form.warnings))
}

/// Makes a taxpayer's actor panic this many times, from its next command on. Fails with "not found" outside the
/// development environment.
pub(crate) async fn schedule_panics(
    state: &ApiState,
    id: TaxpayerId,
    panics: u32,
    by: &OperatorRequest,
) -> Result<(), ApiError> {
    let scheduled_panics = state.taxpayers.scheduled_panics();
    if !scheduled_panics.are_accepted() {
        return Err(ApiError::route_not_found());
    }
    taxpayers::find_by_id(state.store.reader(), id)
        .await?
        .ok_or_else(ApiError::taxpayer_not_found)?;
    let now = state.now();
    let entry = AuditEntry::for_operator_request(by, AuditAction::OrderPanic, &id, now);
    let entry = entry.for_taxpayer(id);
    let entry = entry.with_states(None, Some(format!("{panics} ordered")));
    audit::record(&state.store, &[entry]).await?;
    scheduled_panics.schedule(id, panics);
    Ok(())
}
