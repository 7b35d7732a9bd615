//! POST /v1/app/invoices/transmit: Transmit. Its failures are 500, each with its code (docs/contract.md, "The authority pipeline").

use actix_web::web;
use serde_json::json;

use crate::domain::access::caller::Caller;
use crate::domain::pipeline::{Operation, RunRequest};
use crate::http::acting::{self, Hint};
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::explain::own;
use crate::http::forms::reader::Reader;
use crate::http::forms::{report, transmit as form};
use crate::http::outcome;
use crate::http::patience::Patience;
use crate::http::state::State;

pub(crate) async fn transmit(
    state: web::Data<State>,
    caller: Caller,
    patience: Patience,
    hint: Hint,
    body: Body,
) -> Result<Answer, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting::for_body(&state, caller, &body, hint).await?;
    let read = |reader: &mut Reader<'_>| form::read(reader, taxpayer.as_ref());
    let form = report::read(&body, &state.catalog.get(), read);
    let form = form.map_err(|faults| own::refused(faults, &body))?;
    let id = taxpayer.as_ref().ok_or_else(ApiError::taxpayer_not_found)?.id;
    let document = json!({ "irn": form.value.as_str() });
    let request = RunRequest { operation: Operation::Transmit, irn: form.value, document };
    // Nothing of the body stays in memory while the caller waits.
    drop(body);
    let run = state.pipeline.perform(id, request, patience.wait).await?;
    Ok(outcome::transmitted(&state, &run, patience).await?.warn(&form.warnings))
}
