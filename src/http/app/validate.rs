//! POST /v1/app/invoices/validate: Validate. It changes nothing; whatever is wrong with the payload, by our rules
//! or by the authority's, is 400 (decisions.md, section 6).

use actix_web::http::StatusCode;
use actix_web::web;

use crate::authority::Failure;
use crate::domain::caller::Caller;
use crate::http::acting::{self, Hint};
use crate::http::body::Body;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::forms::validation;
use crate::http::outcome;
use crate::http::state::State;
use crate::http::views::validated::Validated;

pub(crate) async fn validate(
    state: web::Data<State>,
    caller: Caller,
    hint: Hint,
    body: Body,
) -> Result<Answer, ApiError> {
    check(&state, caller, hint, body).await.map_err(|error| match error.status {
        StatusCode::UNPROCESSABLE_ENTITY => error.with_status(StatusCode::BAD_REQUEST),
        _ => error,
    })
}

async fn check(state: &State, caller: Caller, hint: Hint, body: Body) -> Result<Answer, ApiError> {
    let body = body.object().await?;
    let taxpayer = acting::for_body(state, caller, &body, hint).await?;
    let form = validation::read(&body, taxpayer.as_ref(), &state.catalog.get())?;
    taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    let document = &form.value.document;
    state.authority.validate(document).await.map_err(|failure| match failure {
        Failure::Refused { message, .. } | Failure::NotFound { message } => {
            outcome::rejected(&message, document)
        }
        other => other.into(),
    })?;
    let view = Validated::new(&form.value.irn, &form.warnings);
    Ok(Answer::ok("Invoice validated successfully", view).warn(&form.warnings))
}
