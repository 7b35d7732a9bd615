//! GET /ops/reconciliations/{id}: one reconciliation with a page of what it found.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::reconciliation::ReconciliationWithFindings;
use crate::store::operations::reconciliations;

/// Findings shown at once; the counts say how many there are.
pub(crate) const FINDINGS_MAX: u64 = 100;

pub(crate) async fn get_reconciliation(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    id: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let not_found = || ApiError::new(ErrorCode::ReconciliationNotFound, "Reconciliation not found");
    let id = path_ids::uuid(&id).ok_or_else(not_found)?;
    let one = reconciliations::with_id(&state.store, id).await?.ok_or_else(not_found)?;
    let page = query.page(FINDINGS_MAX);
    let findings = reconciliations::findings(&state.store, &one, page).await?;
    let view = ReconciliationWithFindings::new(&one, &findings);
    Ok(ApiResponse::ok("Reconciliation retrieved successfully", view))
}
