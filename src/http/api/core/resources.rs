//! GET /v1/core/resources/{list}: the authority's reference lists, asked for live, unmodified and never kept.
//! What "must exist in" a list is checked against a snapshot instead, which nothing here reads or writes.

use actix_web::web;

use crate::authority::{AuthorityFailure, Cause, ResourceList};
use crate::domain::access::caller::Caller;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn resources(
    state: web::Data<ApiState>,
    caller: Caller,
    list: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let list =
        ResourceList::named(&list).ok_or_else(|| ApiError::new(ErrorCode::RouteNotFound, "No such list"))?;
    let authority = state.authority.on_behalf_of(caller.into());
    let items = authority.resource(list).await.map_err(unavailable)?;
    Ok(ApiResponse::ok("Resources retrieved successfully", items))
}

/// A list that the authority refuses or lacks is one that cannot be had now: the caller asked for nothing wrong.
fn unavailable(failure: AuthorityFailure) -> ApiError {
    match failure {
        AuthorityFailure::Refused { status, .. } => {
            ApiError::from(AuthorityFailure::Retryable { reason: Cause::Down { status } })
        }
        AuthorityFailure::NotFound { .. } => {
            ApiError::from(AuthorityFailure::Retryable { reason: Cause::Down { status: 404 } })
        }
        other => other.into(),
    }
}
