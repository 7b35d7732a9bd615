//! POST /v1/tax-payers/invoices/acknowledge-supplier-invoice: Acknowledge Supplier Invoice.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::extract::body::Body;
use crate::http::forms::report;
use crate::http::forms::supplier_irn;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::inbox::Acknowledgement;

pub(crate) async fn acknowledge_supplier_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), supplier_irn::read)?;
    let invoice = state.inbound.acknowledge(id, &form.value).await?;
    let answer =
        ApiResponse::ok("Supplier invoice acknowledged successfully", Acknowledgement::from(invoice));
    Ok(answer.warn(&form.warnings))
}
