//! Health probes, metrics, the API document, and the response to `GET /`.

use std::future::{self, Ready};

use actix_web::http::header::{
    Accept, CACHE_CONTROL, CONTENT_ENCODING, ContentEncoding, ContentType, ETAG, HeaderValue,
    LOCATION, VARY,
};
use actix_web::{FromRequest, HttpRequest, HttpResponse, web};
use serde_json::json;

use crate::domain::access::caller::{KeyKind, OpsViewer};
use crate::http::incidents;
use crate::http::metrics;
use crate::http::middleware::encodings::choose_encoding;
use crate::http::openapi::served_document::ApiDocument;
use crate::http::openapi::{doc, schema};
use crate::http::paths::{Path, path};
use crate::http::respond::entity_tag::is_known_to_caller;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/health/live").get(answer_liveness, || {
            doc("live", "The process answers")
                .with_note(
                    "A process that does not answer here has to be \
                     restarted.",
                )
                .with_schema_response(200, "ok", schema::object())
        }),
        path("/health/ready").get(answer_readiness, || {
            doc("ready", "The service may be sent requests")
                .with_note(
                    "While the answer is 503, requests belong to another \
                     process; the body says why.",
                )
                .with_schema_response(200, "ready", schema::object())
                .with_schema_response(503, "not ready", schema::object())
        }),
        path("/metrics").get(get_metrics, || {
            doc("metrics", "Metrics, in the text format of Prometheus")
                .with_note(
                    "With `metrics.public = false` in the settings an operator's key is asked for.",
                )
                .with_non_json_response(200, "metrics", metrics::CONTENT_TYPE)
                .with_optional_key(KeyKind::Operator)
        }),
        path("/openapi.json").get(get_openapi, || {
            doc("openapi", "This document")
                .with_note(
                    "In OpenAPI 3.1, as built from the code that answers. With its `ETag` in \
                     `If-None-Match`, the answer is 304 until another version of the service runs.",
                )
                .with_schema_response(200, "OpenAPI 3.1", schema::object())
        }),
        path("/").page(redirect_from_root),
    ]
}

/// GET /health/live: returns 200 as long as the process can answer.
fn answer_liveness() -> Ready<HttpResponse> {
    future::ready(HttpResponse::Ok().json(json!({ "status": "ok" })))
}

/// GET /health/ready: returns 503 if the database or the actors are down, or if the process was asked to stop. If only
/// the authority is down, returns 200.
async fn answer_readiness(state: web::Data<ApiState>) -> HttpResponse {
    let report = incidents::readiness(&state).await;
    let mut answer = if report.is_ready() {
        HttpResponse::Ok()
    } else {
        HttpResponse::ServiceUnavailable()
    };
    answer.json(report)
}

/// GET /metrics: returns the metrics. A setting decides whether everybody may read them or only operators.
async fn get_metrics(
    state: web::Data<ApiState>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    if !state.settings.metrics_public {
        OpsViewer::extract(&request).await?;
    }
    let text = metrics::render_page(&state).await?;
    Ok(HttpResponse::Ok()
        .content_type(metrics::CONTENT_TYPE)
        .body(text))
}

/// GET /openapi.json: returns the API document, or 304 if the caller has it already.
async fn get_openapi(
    document: web::Data<&'static ApiDocument>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let tag = document.tag();
    let is_known = is_known_to_caller(&request, tag);
    let mut answer = if is_known {
        HttpResponse::NotModified()
    } else {
        HttpResponse::Ok()
    };
    answer
        .insert_header((ETAG, tag.to_string()))
        .insert_header((CACHE_CONTROL, HeaderValue::from_static("no-cache")))
        .insert_header((VARY, HeaderValue::from_static("accept-encoding")));
    if is_known {
        return Ok(answer.finish());
    }
    let encoding = choose_encoding(&request);
    if encoding != ContentEncoding::Identity {
        answer.insert_header((CONTENT_ENCODING, encoding.as_str()));
    }
    let bytes = document.bytes(encoding).await?;
    Ok(answer.content_type(ContentType::json()).body(bytes))
}

/// GET /: redirects a browser to the sign-in, and a program to the documentation. The response for a program lists the
/// main paths.
fn redirect_from_root(accepted: Option<web::Header<Accept>>) -> Ready<HttpResponse> {
    let wants_page = accepted.is_some_and(|accepted| {
        accepted
            .0
            .iter()
            .any(|range| range.item.essence_str() == "text/html")
    });
    if wants_page {
        return future::ready(
            HttpResponse::SeeOther()
                .insert_header((LOCATION, "/sign-in"))
                .finish(),
        );
    }
    future::ready(
        HttpResponse::TemporaryRedirect()
            .insert_header((LOCATION, "/docs/"))
            .json(json!({
                "service": "einvoice",
                "version": env!("CARGO_PKG_VERSION"),
                "documentation": "/docs/",
                "openapi": "/openapi.json",
                "ready": "/health/ready",
                "sign_in": "/sign-in",
            })),
    )
}
