//! GET /ops/outages: the outages of the authority, newest first, as all replicas saw them.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::outage::OutageView;
use crate::http::views::paginator::Paginator;
use crate::store::operations::outages;

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_outages(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let (page, now) = (query.page(PER_PAGE_DEFAULT), state.now());
    let (found, total) = outages::page(&state.store, page).await?;
    let told = outages::told_of(&state.store, &found).await?;
    let items = found.iter().map(|outage| OutageView::new(outage, &told, now)).collect();
    Ok(ApiResponse::ok("Outages retrieved successfully", Paginator::new(page, total, items)))
}
