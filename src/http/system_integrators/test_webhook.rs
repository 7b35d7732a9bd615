//! POST /v1/system-integrators/taxpayers/{id}/webhook/test (GET too): what the endpoint answers to a test.

use actix_web::web;

use crate::domain::caller::IntegratorCaller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::endpoint_answer::EndpointAnswer;

pub(crate) async fn test_webhook(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let attempt = state.satchel.rehearse(taxpayer.id).await?;
    let answer = EndpointAnswer::of(&attempt)?;
    let message = format!("Connection test successful! Response code: {}", answer.status);
    Ok(Answer::ok(message, answer.body))
}
