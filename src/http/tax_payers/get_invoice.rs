//! GET /v1/tax-payers/invoices/{id}: Get Invoice by ID.

use actix_web::web;

use crate::domain::caller::TaxpayerCaller;
use crate::domain::object::InvoiceObject;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::state::State;
use crate::store::invoices;

pub(crate) async fn get_invoice(
    state: web::Data<State>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    id: web::Path<String>,
) -> Result<Answer, ApiError> {
    let id = ident::invoice_id(&id)?;
    let found = invoices::owned_by_with_id(&state.store, taxpayer, id).await?;
    let invoice = found.ok_or_else(ApiError::invoice_not_found)?;
    Ok(Answer::ok("Invoice retrieved successfully", InvoiceObject::from(&invoice)))
}
