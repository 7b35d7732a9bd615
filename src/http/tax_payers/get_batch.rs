//! GET `/v1/tax-payers/invoices/batches/{batch_no}`: what became of each invoice of a batch.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::code::Code;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::state::State;
use crate::http::views::batch::BatchView;
use crate::store::invoices::batches;

pub(crate) async fn get_batch(
    state: web::Data<State>,
    TaxpayerCaller(id): TaxpayerCaller,
    batch_no: web::Path<String>,
) -> Result<Answer, ApiError> {
    let not_found = || ApiError::new(Code::BatchNotFound, "Batch not found");
    if batch_no.chars().any(char::is_control) {
        return Err(not_found());
    }
    let batch = batches::owned_by_with_number(&state.store, id, &batch_no).await?;
    let batch = batch.ok_or_else(not_found)?;
    Ok(Answer::ok("Batch retrieved successfully", BatchView::from(&batch)))
}
