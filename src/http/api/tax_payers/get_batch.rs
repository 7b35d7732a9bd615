//! GET `/v1/tax-payers/invoices/batches/{batch_no}`: what became of each invoice of a batch.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::batch::BatchView;
use crate::store::invoices::batches;

pub(crate) async fn get_batch(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    batch_no: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let not_found = || ApiError::new(ErrorCode::BatchNotFound, "Batch not found");
    if batch_no.chars().any(char::is_control) {
        return Err(not_found());
    }
    let batch = batches::owned_by_with_number(&state.store, id, &batch_no).await?;
    let batch = batch.ok_or_else(not_found)?;
    Ok(ApiResponse::ok("Batch retrieved successfully", BatchView::from(&batch)))
}
