//! GET /v1/tax-payers/supplier-invoices: the inbox, newest first.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::inbox::InboxLine;
use crate::http::views::paginator::Paginator;
use crate::store::operations::supplier_invoices;

const PER_PAGE_DEFAULT: u64 = 10;

pub(crate) async fn list_supplier_invoices(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let (found, total) = supplier_invoices::page_owned_by(&state.store, id, page).await?;
    let items = found.into_iter().map(InboxLine::from).collect();
    Ok(ApiResponse::ok("Supplier invoices retrieved successfully", Paginator::new(page, total, items)))
}
