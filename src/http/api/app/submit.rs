//! POST /v1/app/invoices/submit: Submit. Sending the same IRN again joins the run there is.

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::http::api::app::run_response;
use crate::http::explain::local_faults;
use crate::http::extract::acting_taxpayer::{self, TaxpayerHint};
use crate::http::extract::body::Body;
use crate::http::extract::prefer::Prefer;
use crate::http::forms::submission;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn submit(
    state: web::Data<ApiState>,
    caller: Caller,
    prefer: Prefer,
    hint: TaxpayerHint,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting_taxpayer::for_body(&state, caller, &body, hint).await?;
    let form = submission::read(&body, taxpayer.as_ref(), &state.catalog.get());
    let form = form.map_err(|faults| local_faults::refused(faults, &body))?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    // Nothing of the body stays in memory while the caller waits.
    drop(body);
    let run = state.pipeline.perform(taxpayer.id, form.value, prefer.wait).await?;
    Ok(run_response::submitted(&state, &run, prefer).await?.warn(&form.warnings))
}
