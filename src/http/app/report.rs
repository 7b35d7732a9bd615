//! POST /v1/app/invoices/report: Report. Its failures are 500, each with its code (docs/contract.md, "The authority pipeline").

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::http::acting::{self, Hint};
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::explain::own;
use crate::http::forms::reader::Reader;
use crate::http::forms::{report as form, vat_report};
use crate::http::outcome;
use crate::http::patience::Patience;
use crate::http::state::State;

pub(crate) async fn report(
    state: web::Data<State>,
    caller: Caller,
    patience: Patience,
    hint: Hint,
    body: Body,
) -> Result<Answer, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting::for_body(&state, caller, &body, hint).await?;
    let is_of_another = acting::names_another(&state, caller, &body).await?;
    let read = |reader: &mut Reader<'_>| vat_report::read(reader, taxpayer.as_ref(), is_of_another);
    let form = form::read(&body, &state.catalog.get(), read);
    let form = form.map_err(|faults| own::refused(faults, &body))?;
    let id = taxpayer.as_ref().ok_or_else(ApiError::taxpayer_not_found)?.id;
    // Nothing of the body stays in memory while the caller waits.
    drop(body);
    let run = state.pipeline.perform(id, form.value, patience.wait).await?;
    Ok(outcome::reported(&state, &run, patience).await?.warn(&form.warnings))
}
