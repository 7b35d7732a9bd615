//! GET /v1/tax-payers/invoices/{id}: Get Invoice by ID. `include=lines,ledger` shows more of it.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::invoice::{Included, InvoiceView};
use crate::store::invoices;
use crate::store::invoices::payments;

pub(crate) async fn get_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    id: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let id = path_ids::invoice_id(&id)?;
    let included = Included::of(query.text("include").unwrap_or_default());
    let found = invoices::owned_by_with_id(&state.store, taxpayer, id).await?;
    let invoice = found.ok_or_else(ApiError::invoice_not_found)?;
    let entries = if included.ledger {
        Some(payments::owned_by_of_invoice(&state.store, taxpayer, id).await?)
    } else {
        None
    };
    let view = InvoiceView::new(&invoice, &included, entries);
    let unknown = included.unknown.iter().map(|word| format!("include knows lines and ledger, not {word}"));
    Ok(ApiResponse::ok("Invoice retrieved successfully", view).warn(&unknown.take(20).collect::<Vec<_>>()))
}
