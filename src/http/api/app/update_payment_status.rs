//! PATCH /v1/app/invoices/{irn}/update-payment-status (POST and PUT too): a payment status for the authority,
//! which the stored invoice follows.

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::http::api::app::run_response;
use crate::http::explain::local_faults;
use crate::http::extract::acting_taxpayer;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::extract::prefer::Prefer;
use crate::http::forms::relayed_payment;
use crate::http::forms::report;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn update_payment_status(
    state: web::Data<ApiState>,
    caller: Caller,
    irn: web::Path<String>,
    prefer: Prefer,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::irn(&irn)?;
    let taxpayer = acting_taxpayer::for_irn(&state, caller, &irn).await?;
    let body = body.object().await?;
    let form = report::read(&body, &state.catalog.get(), relayed_payment::read);
    let form = form.map_err(|faults| local_faults::refused(faults, &body))?;
    // Nothing of the body stays in memory while the caller waits.
    drop(body);
    let run = state.pipeline.update_payment(taxpayer.id, &irn, &form.value, prefer.wait).await?;
    Ok(run_response::paid(&state, &run, prefer).await?.warn(&form.warnings))
}
