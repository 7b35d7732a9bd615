//! POST /v1/app/invoices/transmit: Transmit. Its failures are 500, each with its code (docs/contract.md, "The authority pipeline").

use actix_web::web;
use serde_json::json;

use crate::domain::access::caller::Caller;
use crate::domain::pipeline::{Operation, RunRequest};
use crate::http::api::app::run_response;
use crate::http::explain::local_faults;
use crate::http::extract::acting_taxpayer::{self, TaxpayerHint};
use crate::http::extract::body::Body;
use crate::http::extract::prefer::Prefer;
use crate::http::forms::reader::Reader;
use crate::http::forms::report;
use crate::http::forms::transmit as form;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) async fn transmit(
    state: web::Data<ApiState>,
    caller: Caller,
    prefer: Prefer,
    hint: TaxpayerHint,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting_taxpayer::for_body(&state, caller, &body, hint).await?;
    let read = |reader: &mut Reader<'_>| form::read(reader, taxpayer.as_ref());
    let form = report::read(&body, &state.catalog.get(), read);
    let form = form.map_err(|faults| local_faults::refused(faults, &body))?;
    let id = taxpayer.as_ref().ok_or_else(ApiError::taxpayer_not_found)?.id;
    let document = json!({ "irn": form.value.as_str() });
    let request = RunRequest { operation: Operation::Transmit, irn: form.value, document };
    // Nothing of the body stays in memory while the caller waits.
    drop(body);
    let run = state.pipeline.perform(id, request, prefer.wait).await?;
    Ok(run_response::transmitted(&state, &run, prefer).await?.warn(&form.warnings))
}
