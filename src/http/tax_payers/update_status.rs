//! PATCH /v1/tax-payers/invoices/update-status: Update Invoice Status.

use actix_web::web;

use crate::domain::caller::TaxpayerCaller;
use crate::domain::object::InvoiceObject;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::{report, update_status as form};
use crate::http::ident;
use crate::http::state::State;

pub(crate) async fn update_status(
    state: web::Data<State>,
    TaxpayerCaller(id): TaxpayerCaller,
    body: Body,
) -> Result<Answer, ApiError> {
    let body = body.object().await?;
    let form = report::read(&body, &state.catalog.get(), form::read)?;
    let update = form.value;
    let which = ident::which(update.which)?;
    let invoice = state.taxpayers.set_status(id, which, update.status, update.remark).await?;
    let answer = Answer::ok("Invoice status updated successfully", InvoiceObject::from(&invoice));
    Ok(answer.warn(&form.warnings))
}
