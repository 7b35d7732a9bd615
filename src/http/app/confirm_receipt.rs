//! PATCH /v1/app/invoices/transmit/{irn}/confirm-receipt (POST and PUT too). Where the receipt had been
//! confirmed before, the message is the authority's own.

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::state::State;
use crate::http::{acting, ident};

pub(crate) async fn confirm_receipt(
    state: web::Data<State>,
    caller: Caller,
    irn: web::Path<String>,
) -> Result<Answer, ApiError> {
    let irn = ident::irn(&irn)?;
    let taxpayer = acting::for_irn(&state, caller, &irn).await?;
    let receipt = state.pipeline.confirm_receipt(taxpayer.id, &irn).await?;
    let message = receipt.already.as_deref().unwrap_or("Invoice transmission receipt confirmed");
    Ok(Answer::ok(message, receipt.confirmation))
}
