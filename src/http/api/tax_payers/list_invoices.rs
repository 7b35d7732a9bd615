//! GET /v1/tax-payers/invoices: List Invoices, newest first. Where more follows, headers say where it begins.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::http::forms::invoice_filters;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::store::invoices::list;

pub(crate) async fn list_invoices(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let asked = invoice_filters::read(&query)?;
    let span = (asked.start, asked.page.per_page);
    let part = list::owned_by(&state.store, id, &asked.filters, span).await?;
    let items = part.invoices.iter().map(InvoiceObject::from).collect();
    let answer =
        ApiResponse::ok("Invoice retrieved successfully", Paginator::new(asked.page, part.total, items));
    let Some(place) = part.next else { return Ok(answer) };
    let cursor = invoice_filters::cursor(place);
    Ok(answer.followed_by(&cursor, &invoice_filters::following(&query, &cursor)))
}
