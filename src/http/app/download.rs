//! GET /v1/app/invoices/{irn}/download (POST too): the authority's document of a signed invoice, decrypted.

use actix_web::web;

use crate::actors::pipeline::door::RelayFailure;
use crate::authority::AuthorityFailure;
use crate::domain::access::caller::Caller;
use crate::http::code::Code;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::state::State;
use crate::http::{acting, ident};

pub(crate) async fn download(
    state: web::Data<State>,
    caller: Caller,
    irn: web::Path<String>,
) -> Result<Answer, ApiError> {
    let irn = ident::irn(&irn)?;
    let taxpayer = acting::for_irn(&state, caller, &irn).await?;
    let document = state.pipeline.download(taxpayer.id, &irn).await.map_err(|failure| match failure {
        RelayFailure::Authority(AuthorityFailure::NotFound { .. }) => {
            ApiError::new(Code::InvoiceFileNotFound, "Invoice File not found")
        }
        other => other.into(),
    })?;
    Ok(Answer::ok("Invoice downloaded successfully", document))
}
