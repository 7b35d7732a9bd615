//! GET /ops/reconciliations: what was compared with the authority's ledger, newest first.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::reconciliation::ReconciliationView;
use crate::store::operations::reconciliations::{self, ReconciliationFilter};

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_reconciliations(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let filter =
        ReconciliationFilter { taxpayer_id: query.taxpayer_id("taxpayer_id"), day: query.date("day")? };
    let (found, total) = reconciliations::page(&state.store, filter, page).await?;
    let items = found.iter().map(ReconciliationView::from).collect();
    Ok(ApiResponse::ok("Reconciliations retrieved successfully", Paginator::new(page, total, items)))
}
