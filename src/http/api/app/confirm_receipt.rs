//! PATCH /v1/app/invoices/transmit/{irn}/confirm-receipt (POST and PUT too). Where the receipt had been
//! confirmed before, the message is the authority's own.

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::http::extract::acting_taxpayer;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn confirm_receipt(
    state: web::Data<ApiState>,
    caller: Caller,
    irn: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let receipt = state.pipeline.confirm_receipt(taxpayer.id, &irn).await?;
    let message = receipt.already.as_deref().unwrap_or("Invoice transmission receipt confirmed");
    Ok(ApiResponse::ok(message, receipt.confirmation))
}
