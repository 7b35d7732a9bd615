//! Health, metrics and what operators do.

use utoipa::openapi::path::HttpMethod::Get;
use utoipa::openapi::schema::ObjectBuilder;

use crate::http::code::Code;
use crate::http::metrics::CONTENT_TYPE;
use crate::http::openapi::operation::{Key, Operation};
use crate::http::openapi::schema;

pub(super) fn operations() -> Vec<Operation> {
    let object = || ObjectBuilder::new().build().into();
    vec![
        Operation::new(Get, "/health/live", "live", "The process answers").shows(200, "ok", object()),
        Operation::new(Get, "/health/ready", "ready", "The service may be sent requests")
            .shows(200, "ready", object())
            .shows(503, "not ready", object()),
        Operation::new(Get, "/metrics", "metrics", "Metrics, in the text format of Prometheus")
            .noted("With `metrics.public = false` in the settings an operator's key is asked for.")
            .shows_text(200, "metrics", CONTENT_TYPE)
            .fails(&[Code::Unauthenticated, Code::InvalidApiKey]),
        Operation::new(Get, "/openapi.json", "openapi", "This document").shows(200, "OpenAPI 3.1", object()),
        Operation::new(Get, "/ops/supervision", "supervision", "The tree of actors, gravest first")
            .by(Key::Operator)
            .shows(200, "Supervision retrieved successfully", schema::envelope(object())),
    ]
}
