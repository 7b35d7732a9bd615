//! Health probes, metrics, and the API document with a viewer.

use std::future::{self, Ready};
use std::sync::Arc;

use actix_web::http::header::{
    Accept, CONTENT_SECURITY_POLICY, ContentType, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::{FromRequest, HttpRequest, HttpResponse, web};
use serde_json::json;
use utoipa_swagger_ui::Config;

use crate::domain::access::caller::OpsViewer;
use crate::http::endpoint::{Path, path};
use crate::http::incidents;
use crate::http::metrics;
use crate::http::openapi::document::ApiDocument;
use crate::http::openapi::{doc, schema};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

pub(crate) fn endpoints() -> Vec<Path> {
    vec![
        path("/health/live").get(live, || {
            doc("live", "The process answers").shows(200, "ok", schema::object())
        }),
        path("/health/ready").get(ready, || {
            doc("ready", "The service may be sent requests")
                .shows(200, "ready", schema::object())
                .shows(503, "not ready", schema::object())
        }),
        path("/metrics").get(metrics, || {
            doc("metrics", "Metrics, in the text format of Prometheus")
                .with_note(
                    "With `metrics.public = false` in the settings an operator's key is asked for.",
                )
                .shows_text(200, "metrics", metrics::CONTENT_TYPE)
                .fails(&[ErrorCode::Unauthenticated, ErrorCode::InvalidApiKey])
        }),
        path("/openapi.json").get(openapi, || {
            doc("openapi", "This document").shows(200, "OpenAPI 3.1", schema::object())
        }),
        path("/").page(root),
        path("/docs").page(redirect_to_docs),
        path("/docs/{file:.*}").page(docs),
    ]
}

/// GET /health/live: returns 200 as long as the process can answer.
fn live() -> Ready<HttpResponse> {
    future::ready(HttpResponse::Ok().json(json!({ "status": "ok" })))
}

/// GET /health/ready: returns 503 if the database or the actors are down, or if the process was asked to stop. If only the authority is down, returns 200.
async fn ready(state: web::Data<ApiState>) -> HttpResponse {
    let report = incidents::readiness(&state).await;
    let mut answer = if report.is_ready() {
        HttpResponse::Ok()
    } else {
        HttpResponse::ServiceUnavailable()
    };
    answer.json(report)
}

/// GET /metrics: returns the metrics. A setting decides whether everybody may read them or only operators.
async fn metrics(
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

/// GET /openapi.json: returns the API document.
fn openapi(document: web::Data<ApiDocument>) -> Ready<HttpResponse> {
    let text = document.into_inner().0;
    future::ready(
        HttpResponse::Ok()
            .content_type(ContentType::json())
            .body(text()),
    )
}

/// Content security policy of the viewer's pages: they may load and call only this service, and no page may frame them.
/// The viewer needs inline styles and `data:` images.
const VIEWER_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// GET /docs/: returns a file of the API viewer. All files of the viewer are part of the binary.
fn docs(file: web::Path<String>) -> Ready<Result<HttpResponse, ApiError>> {
    // By default the viewer sends the address of the API document to a public validator. `none` turns this off.
    let config = Config::from("/openapi.json").validator_url("none");
    let found =
        utoipa_swagger_ui::serve(&file.into_inner(), Arc::new(config)).map_err(ApiError::internal);
    future::ready(found.and_then(|found| {
        let file = found.ok_or_else(|| ApiError::new(ErrorCode::RouteNotFound, "No such page"))?;
        let mut page = HttpResponse::Ok();
        page.content_type(file.content_type);
        page.insert_header((CONTENT_SECURITY_POLICY, VIEWER_SECURITY_POLICY));
        page.insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"));
        page.insert_header((REFERRER_POLICY, "no-referrer"));
        Ok(page.body(file.bytes.into_owned()))
    }))
}

/// GET /: redirects a browser to the sign-in, and a program to the documentation. The response for a program lists the
/// main paths.
fn root(accepted: Option<web::Header<Accept>>) -> Ready<HttpResponse> {
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

/// Redirects to `/docs/`, since the viewer's relative links need the slash at the end.
fn redirect_to_docs() -> Ready<HttpResponse> {
    future::ready(
        HttpResponse::TemporaryRedirect()
            .insert_header((LOCATION, "/docs/"))
            .finish(),
    )
}
