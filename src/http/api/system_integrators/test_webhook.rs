//! POST /v1/system-integrators/taxpayers/{id}/webhook/test (GET too): what the endpoint answers to a test, or with
//! `grade=true` what it is worth.

use actix_web::web;

use crate::actors::delivery::GradingOutcome;
use crate::domain::access::caller::IntegratorCaller;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::endpoint_answer::EndpointAnswer;
use crate::http::views::grade::GradeView;

pub(crate) async fn test_webhook(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let attempt = if query.flag("grade")? {
        match state.delivery.grade(taxpayer.id).await? {
            GradingOutcome::Graded(graded) => {
                let message = format!("Webhook graded {}: {} of 100 points", graded.grade, graded.score);
                return Ok(ApiResponse::ok(message, GradeView::from(&graded)));
            }
            GradingOutcome::Unanswered(attempt) => attempt,
        }
    } else {
        state.delivery.send_test_delivery(taxpayer.id).await?
    };
    let answer = EndpointAnswer::of(&attempt)?;
    let message = format!("Connection test successful! Response code: {}", answer.status);
    Ok(ApiResponse::ok(message, answer.body))
}
