//! POST /v1/tax-payers/invoices/get-by-unique-no: Get Invoice by Unique Number.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::{report, unique_no};
use crate::http::ident;
use crate::http::state::State;
use crate::store::invoices;

pub(crate) async fn get_by_unique_no(
    state: web::Data<State>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    body: Body,
) -> Result<Answer, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), unique_no::read)?;
    let which = ident::which(form.value)?;
    let found = invoices::owned_by_with_unique_no(&state.store, taxpayer, which.kind, &which.text).await?;
    let invoice = found.ok_or_else(ApiError::invoice_not_found)?;
    let answer = Answer::ok("Invoice retrieved successfully", InvoiceObject::from(&invoice));
    Ok(answer.warn(&form.warnings))
}
