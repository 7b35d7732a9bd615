//! POST /v1/app/invoices/report: Report. Its failures are 500, each with its code (docs/contract.md, "The authority pipeline").

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::http::api::app::run_response;
use crate::http::explain::local_faults;
use crate::http::extract::acting_taxpayer::{self, TaxpayerHint};
use crate::http::extract::body::Body;
use crate::http::extract::prefer::Prefer;
use crate::http::forms::reader::Reader;
use crate::http::forms::report as form;
use crate::http::forms::vat_report;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn report(
    state: web::Data<ApiState>,
    caller: Caller,
    prefer: Prefer,
    hint: TaxpayerHint,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting_taxpayer::for_body(&state, caller, &body, hint).await?;
    let is_of_another = acting_taxpayer::names_another(&state, caller, &body).await?;
    let read = |reader: &mut Reader<'_>| vat_report::read(reader, taxpayer.as_ref(), is_of_another);
    let form = form::read(&body, &state.catalog.get(), read);
    let form = form.map_err(|faults| local_faults::refused(faults, &body))?;
    let id = taxpayer.as_ref().ok_or_else(ApiError::taxpayer_not_found)?.id;
    // Nothing of the body stays in memory while the caller waits.
    drop(body);
    let run = state.pipeline.perform(id, form.value, prefer.wait).await?;
    Ok(run_response::reported(&state, &run, prefer).await?.warn(&form.warnings))
}
