//! Submit, Transmit and Report: each starts a pipeline run, or joins the existing one. Failures of Transmit and
//! Report have status 500, each with its own code (docs/contract.md, "The authority pipeline").

use actix_web::web;
use serde_json::json;

use crate::domain::access::caller::Caller;
use crate::domain::pipeline::{Operation, RunRequest};
use crate::http::api::app::run_response;
use crate::http::explain::local_faults;
use crate::http::extract::acting_taxpayer;
use crate::http::extract::acting_taxpayer::TaxpayerHint;
use crate::http::extract::body::Body;
use crate::http::extract::prefer::Prefer;
use crate::http::forms::reader::Reader;
use crate::http::forms::{report, submission, transmit, vat_report};
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// POST /v1/app/invoices/submit: Submit. A repeated call with the same IRN joins the existing run.
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
    // Frees the body before the wait for the run.
    drop(body);
    let run = state.pipeline.perform(taxpayer.id, form.value, prefer.wait).await?;
    Ok(run_response::submitted(&state, &run, prefer).await?.warn(&form.warnings))
}

/// POST /v1/app/invoices/transmit: Transmit. Its failures have status 500, each with its own code (docs/contract.md,
/// "The authority pipeline").
pub(crate) async fn transmit(
    state: web::Data<ApiState>,
    caller: Caller,
    prefer: Prefer,
    hint: TaxpayerHint,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting_taxpayer::for_body(&state, caller, &body, hint).await?;
    let read = |reader: &mut Reader<'_>| transmit::read(reader, taxpayer.as_ref());
    let form = report::read(&body, &state.catalog.get(), read);
    let form = form.map_err(|faults| local_faults::refused(faults, &body))?;
    let id = taxpayer.as_ref().ok_or_else(ApiError::taxpayer_not_found)?.id;
    let document = json!({ "irn": form.value.as_str() });
    let request = RunRequest { operation: Operation::Transmit, irn: form.value, document };
    // Frees the body before the wait for the run.
    drop(body);
    let run = state.pipeline.perform(id, request, prefer.wait).await?;
    Ok(run_response::transmitted(&state, &run, prefer).await?.warn(&form.warnings))
}

/// POST /v1/app/invoices/report: Report. Its failures have status 500, each with its own code (docs/contract.md, "The
/// authority pipeline").
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
    let form = report::read(&body, &state.catalog.get(), read);
    let form = form.map_err(|faults| local_faults::refused(faults, &body))?;
    let id = taxpayer.as_ref().ok_or_else(ApiError::taxpayer_not_found)?.id;
    // Frees the body before the wait for the run.
    drop(body);
    let run = state.pipeline.perform(id, form.value, prefer.wait).await?;
    Ok(run_response::reported(&state, &run, prefer).await?.warn(&form.warnings))
}
