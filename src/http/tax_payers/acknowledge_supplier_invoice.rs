//! POST /v1/tax-payers/invoices/acknowledge-supplier-invoice: Acknowledge Supplier Invoice.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::{report, supplier_irn};
use crate::http::state::State;
use crate::http::views::inbox::Acknowledgement;

pub(crate) async fn acknowledge_supplier_invoice(
    state: web::Data<State>,
    TaxpayerCaller(id): TaxpayerCaller,
    body: Body,
) -> Result<Answer, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), supplier_irn::read)?;
    let invoice = state.inbound.acknowledge(id, &form.value).await?;
    let answer = Answer::ok("Supplier invoice acknowledged successfully", Acknowledgement::from(invoice));
    Ok(answer.warn(&form.warnings))
}
