//! PATCH /v1/tax-payers/invoices/update-payment-status: Update Payment Status.

use actix_web::web;

use crate::actors::taxpayer::command::PaymentUpdate;
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::{payment_update, report};
use crate::http::idempotency::Keyed;
use crate::http::ident;
use crate::http::state::State;

pub(crate) async fn update_payment_status(
    state: web::Data<State>,
    TaxpayerCaller(id): TaxpayerCaller,
    keyed: Keyed,
    body: Body,
) -> Result<Answer, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), payment_update::read)?;
    let update = PaymentUpdate { which: ident::which(form.value.which)?, ..form.value };
    let show = move |invoice: &Invoice| {
        let answer = Answer::ok("Invoice payment status updated successfully", InvoiceObject::from(invoice));
        answer.warn(&form.warnings)
    };
    keyed.answer(&state.taxpayers, show, async |taxpayers| taxpayers.pay(id, update).await).await
}
