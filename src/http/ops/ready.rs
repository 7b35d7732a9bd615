//! GET /health/ready: 200, also while the authority is dead; 503 where the database or the actors are.

use actix_web::{HttpResponse, web};

use crate::http::health::Report;
use crate::http::state::State;

pub(crate) async fn ready(state: web::Data<State>) -> HttpResponse {
    let report = Report::of(&state).await;
    let mut answer = if report.is_ready() { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() };
    answer.json(report)
}
