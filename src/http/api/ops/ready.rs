//! GET /health/ready: 200, also while the authority is dead; 503 where the database or the actors are.

use actix_web::{HttpResponse, web};

use crate::http::state::ApiState;

pub(crate) async fn ready(state: web::Data<ApiState>) -> HttpResponse {
    let report = state.health.report(&state.store, &state.tree, &state.authority).await;
    let mut answer = if report.is_ready() { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() };
    answer.json(report)
}
