//! GET /v1/app/invoices/{irn}/confirm (POST too): what the authority knows of an invoice.

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::state::State;
use crate::http::{acting, ident};

pub(crate) async fn confirm(
    state: web::Data<State>,
    caller: Caller,
    irn: web::Path<String>,
) -> Result<Answer, ApiError> {
    let irn = ident::irn(&irn)?;
    let taxpayer = acting::for_irn(&state, caller, &irn).await?;
    let confirmation = state.pipeline.confirm(taxpayer.id, &irn).await?;
    Ok(Answer::ok("Invoice confirmed successfully", confirmation))
}
