//! GET /ops/reconciliations/{id}: one reconciliation with a page of what it found.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::code::Code;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::query::Query;
use crate::http::state::State;
use crate::http::views::reconciliation::ReconciliationWithFindings;
use crate::store::operations::reconciliations;

/// Findings shown at once; the counts say how many there are.
pub(crate) const FINDINGS_MAX: u64 = 100;

pub(crate) async fn get_reconciliation(
    state: web::Data<State>,
    _: OperatorCaller,
    id: web::Path<String>,
    query: Query,
) -> Result<Answer, ApiError> {
    let not_found = || ApiError::new(Code::ReconciliationNotFound, "Reconciliation not found");
    let id = ident::uuid(&id).ok_or_else(not_found)?;
    let one = reconciliations::with_id(&state.store, id).await?.ok_or_else(not_found)?;
    let page = query.page(FINDINGS_MAX);
    let findings = reconciliations::findings(&state.store, &one, (page.number, page.per_page)).await?;
    let view = ReconciliationWithFindings::new(&one, &findings);
    Ok(Answer::ok("Reconciliation retrieved successfully", view))
}
