//! PATCH /v1/tax-payers/invoices/update-status: Update Invoice Status.

use actix_web::web;

use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::report;
use crate::http::forms::update_status as form;
use crate::http::idempotency::IdempotentRequest;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn update_status(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), form::read)?;
    let update = form.value;
    let which = path_ids::which(update.which)?;
    let show = move |invoice: &Invoice| {
        let answer = ApiResponse::ok("Invoice status updated successfully", InvoiceObject::from(invoice));
        answer.warn(&form.warnings)
    };
    let send =
        async |taxpayers: TaxpayerHandle| taxpayers.set_status(id, which, update.status, update.remark).await;
    idempotent.answer(&state.taxpayers, show, send).await
}
