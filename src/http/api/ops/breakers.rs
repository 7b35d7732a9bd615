//! The breakers of the calls to the authority. Operators read the breakers of this replica, and stop or allow the calls
//! of all replicas.

use std::future::{Ready, ready};

use actix_web::web;
use authority_client::Operation;

use crate::domain::access::caller::{OpsOperator, OpsViewer};
use crate::domain::breaker::BreakerOrderKind;
use crate::domain::kernel::audit::OperatorRequest;
use crate::http::extract::body::Body;
use crate::http::forms::{reader, reason};
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::replicas;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::breaker::Breaker;
use crate::http::views::replica::ReplicaBreaker;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/breakers").get(list_breakers, || {
            doc(
                "breakers",
                "The breaker and the limit of each call to the authority",
            )
            .with_note("Those of the replica that answers. `/ops/replicas` has those of all.")
            .with_list_response::<Breaker>("Breakers retrieved successfully")
        }),
        path("/ops/breakers/{operation}/trip").post(trip_breaker, || {
            doc("trip_breaker", "Stop the calls of an operation")
                .with_note(
                    "Every replica obeys within a second, also after a restart, until the breaker is reset.",
                )
                .with_optional_body(reason::read, example!("reason"))
                .with_response::<ReplicaBreaker<'_>>(200, "Breaker tripped successfully")
                .with_errors(&[ErrorCode::RouteNotFound])
        }),
        path("/ops/breakers/{operation}/reset").post(reset_breaker, || {
            doc("reset_breaker", "Let the calls of an operation pass again")
                .with_note("Every replica obeys within a second.")
                .with_optional_body(reason::read, example!("reason"))
                .with_response::<ReplicaBreaker<'_>>(200, "Breaker reset successfully")
                .with_errors(&[ErrorCode::RouteNotFound])
        }),
    ]
}

/// GET /ops/breakers: lists this process's breaker and concurrency limit of each operation of the authority.
fn list_breakers(state: web::Data<ApiState>, _: OpsViewer) -> Ready<ApiResponse> {
    let state = state.into_inner();
    let breakers = state.authority.breakers();
    let limits = state.authority.call_limits();
    let views: Vec<_> = breakers.iter().zip(&limits).map(Breaker::from).collect();
    ready(ApiResponse::ok("Breakers retrieved successfully", views))
}

/// POST /ops/breakers/{operation}/trip: stops the calls of an operation on all replicas.
async fn trip_breaker(
    state: web::Data<ApiState>,
    operator: OpsOperator,
    operation: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    trip_or_reset(&state, operator, &operation, body, BreakerOrderKind::Trip).await
}

/// POST /ops/breakers/{operation}/reset: lets the calls of an operation pass again on all replicas.
async fn reset_breaker(
    state: web::Data<ApiState>,
    operator: OpsOperator,
    operation: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    trip_or_reset(&state, operator, &operation, body, BreakerOrderKind::Reset).await
}

async fn trip_or_reset(
    state: &ApiState,
    OpsOperator(operator_id): OpsOperator,
    operation: &str,
    body: Body,
    kind: BreakerOrderKind,
) -> Result<ApiResponse, ApiError> {
    let operation = find_operation(operation)?;
    let form = reader::read(
        &*body.object_or_empty().await?,
        &state.catalog.get(),
        reason::read,
    )?;
    let by = OperatorRequest {
        operator_id,
        reason: form.value.0,
    };
    let has_changed = replicas::give_breaker_order(state, operation, kind, &by).await?;
    let local_breaker = replicas::local_breaker(state, operation);
    let message = match (kind, has_changed) {
        (BreakerOrderKind::Trip, true) => "Breaker tripped successfully",
        (BreakerOrderKind::Trip, false) => "Breaker was already tripped",
        (BreakerOrderKind::Reset, true) => "Breaker reset successfully",
        (BreakerOrderKind::Reset, false) => "Breaker was already closed",
    };
    Ok(ApiResponse::ok(message, ReplicaBreaker::from(&local_breaker)).warn(&form.warnings))
}

/// Finds an operation by the name in a path.
pub(crate) fn find_operation(name: &str) -> Result<Operation, ApiError> {
    let known = Operation::ALL
        .into_iter()
        .find(|operation| operation.name() == name);
    known.ok_or_else(|| {
        let names = Operation::ALL.map(Operation::name).join(", ");
        let message = format!("No such operation; the operations are {names}");
        ApiError::new(ErrorCode::RouteNotFound, message)
    })
}
