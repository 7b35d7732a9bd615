//! POST /v1/tax-payers/invoices/get-supplier-invoice: Get Supplier Invoice. The document is the authority's of
//! this moment; where that cannot be had, the copy that was kept at receipt, and a header says so.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::extract::body::Body;
use crate::http::forms::report;
use crate::http::forms::supplier_irn;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

const KEPT: &str = "the authority could not be asked: this is the document as it was at receipt";

pub(crate) async fn get_supplier_invoice(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let mut form = report::read(&*body.object().await?, &state.catalog.get(), supplier_irn::read)?;
    let found = state.inbound.document(id, &form.value).await?;
    if !found.is_live {
        form.warnings.push(KEPT.to_owned());
    }
    let answer = ApiResponse::ok("Supplier invoice retrieved successfully", found.document);
    Ok(answer.warn(&form.warnings))
}
