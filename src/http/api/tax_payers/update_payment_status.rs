//! PATCH /v1/tax-payers/invoices/update-payment-status: Update Payment Status.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::domain::payment::PaymentUpdate;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::payment_update;
use crate::http::forms::report;
use crate::http::idempotency::IdempotentRequest;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn update_payment_status(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), payment_update::read)?;
    let update = PaymentUpdate { invoice: path_ids::which(form.value.invoice)?, ..form.value };
    let show = move |invoice: &Invoice| {
        let answer =
            ApiResponse::ok("Invoice payment status updated successfully", InvoiceObject::from(invoice));
        answer.warn(&form.warnings)
    };
    idempotent.answer(&state.taxpayers, show, async |taxpayers| taxpayers.pay(id, update).await).await
}
