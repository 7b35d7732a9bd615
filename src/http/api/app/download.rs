//! GET /v1/app/invoices/{irn}/download (POST too): the authority's document of a signed invoice, decrypted.

use actix_web::web;

use crate::actors::pipeline::door::RelayFailure;
use crate::authority::AuthorityFailure;
use crate::domain::access::caller::Caller;
use crate::http::extract::acting_taxpayer;
use crate::http::extract::path_ids;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn download(
    state: web::Data<ApiState>,
    caller: Caller,
    irn: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let document = state.pipeline.download(taxpayer.id, &irn).await.map_err(|failure| match failure {
        RelayFailure::Authority(AuthorityFailure::NotFound { .. }) => {
            ApiError::new(ErrorCode::InvoiceFileNotFound, "Invoice File not found")
        }
        other => other.into(),
    })?;
    Ok(ApiResponse::ok("Invoice downloaded successfully", document))
}
