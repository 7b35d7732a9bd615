//! PATCH /v1/tax-payers/invoices/update-status: Update Invoice Status.

use actix_web::web;

use crate::actors::taxpayer::door::Taxpayers;
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::Invoice;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::{report, update_status as form};
use crate::http::idempotency::Keyed;
use crate::http::ident;
use crate::http::state::State;

pub(crate) async fn update_status(
    state: web::Data<State>,
    TaxpayerCaller(id): TaxpayerCaller,
    keyed: Keyed,
    body: Body,
) -> Result<Answer, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), form::read)?;
    let update = form.value;
    let which = ident::which(update.which)?;
    let show = move |invoice: &Invoice| {
        let answer = Answer::ok("Invoice status updated successfully", InvoiceObject::from(invoice));
        answer.warn(&form.warnings)
    };
    let send =
        async |taxpayers: Taxpayers| taxpayers.set_status(id, which, update.status, update.remark).await;
    keyed.answer(&state.taxpayers, show, send).await
}
