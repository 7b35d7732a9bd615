//! GET /health/live: the process answers.

use std::future::{Ready, ready};

use actix_web::HttpResponse;
use serde_json::json;

pub(crate) fn live() -> Ready<HttpResponse> {
    ready(HttpResponse::Ok().json(json!({ "status": "ok" })))
}
