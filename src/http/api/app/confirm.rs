//! GET /v1/app/invoices/{irn}/confirm (POST too): what the authority knows of an invoice.

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::http::extract::acting_taxpayer;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn confirm(
    state: web::Data<ApiState>,
    caller: Caller,
    irn: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let confirmation = state.pipeline.confirm(taxpayer.id, &irn).await?;
    Ok(ApiResponse::ok("Invoice confirmed successfully", confirmation))
}
