//! POST /v1/app/invoices/submit: Submit. Sending the same IRN again joins the run there is.

use actix_web::web;

use crate::domain::access::caller::Caller;
use crate::http::acting::{self, Hint};
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::explain::own;
use crate::http::forms::submission;
use crate::http::outcome;
use crate::http::patience::Patience;
use crate::http::state::State;

pub(crate) async fn submit(
    state: web::Data<State>,
    caller: Caller,
    patience: Patience,
    hint: Hint,
    body: Body,
) -> Result<Answer, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting::for_body(&state, caller, &body, hint).await?;
    let form = submission::read(&body, taxpayer.as_ref(), &state.catalog.get());
    let form = form.map_err(|faults| own::refused(faults, &body))?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    // Nothing of the body stays in memory while the caller waits.
    drop(body);
    let run = state.pipeline.perform(taxpayer.id, form.value, patience.wait).await?;
    Ok(outcome::submitted(&state, &run, patience).await?.warn(&form.warnings))
}
