//! POST /v1/tax-payers/invoices/get-by-unique-no: Get Invoice by Unique Number.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::report;
use crate::http::forms::unique_no;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::invoices;

pub(crate) async fn get_by_unique_no(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), unique_no::read)?;
    let which = path_ids::which(form.value)?;
    let found = invoices::owned_by_with_unique_no(&state.store, taxpayer, which.kind, &which.text).await?;
    let invoice = found.ok_or_else(ApiError::invoice_not_found)?;
    let answer = ApiResponse::ok("Invoice retrieved successfully", InvoiceObject::from(&invoice));
    Ok(answer.warn(&form.warnings))
}
