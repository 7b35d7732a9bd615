//! Outages of the authority, for operators.

use actix_web::web;

use crate::domain::access::caller::OpsViewer;
use crate::http::forms::query::Query;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::outage::OutageView;
use crate::http::views::paginator::Paginator;
use crate::store::operations::outages;

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/outages").get(list_outages, || {
        doc("list_outages", "Outages of the authority, newest first")
            .with_paging("100 at most")
            .with_page_response::<OutageView<'_>>("Outages retrieved successfully")
    })]
}

/// GET /ops/outages: lists the outages of the authority, newest first. All replicas share one list of outages.
async fn list_outages(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let now = state.now();
    let (outage_page, total) = outages::page(&state.store, page).await?;
    let notified = outages::count_notified_taxpayers(&state.store, &outage_page).await?;
    let queued = outages::queued_events(&state.store).await?;
    let items = outage_page
        .iter()
        .map(|outage| OutageView::new(outage, &notified, &queued, now))
        .collect();
    Ok(ApiResponse::ok(
        "Outages retrieved successfully",
        Paginator::new(page, total, items),
    ))
}
