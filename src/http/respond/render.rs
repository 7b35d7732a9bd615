//! Renders a failure: in the envelope of all responses, or as a problem document (RFC 9457) if the caller accepts one.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use serde::Serialize;
use serde_json::{Value, json};
use timing::retry_after::RetryAfter;
use timing::trace::TraceContext;

use crate::domain::kernel::fault::{Fault, json_pointer};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::details::Members;
use crate::http::respond::error::ApiError;
use crate::http::respond::logged_failure::LoggedFailure;

/// The value of `WWW-Authenticate`, which every 401 must have (RFC 9110). The scheme `ApiKey` is not registered.
const CHALLENGE: &str = r#"ApiKey realm="einvoice", header="x-api-key""#;

/// The parts of a request that are needed to render its failure.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponsePrefs {
    pub(crate) request_id: String,
    pub(crate) trace: TraceContext,
    /// True if the caller accepts `application/problem+json`.
    pub(crate) wants_problem: bool,
    /// The address with which links to this service begin; `None` if links are paths on the host of the request.
    pub(crate) public_url: Option<String>,
}

impl ResponsePrefs {
    /// Returns the address of the page about an error code. Without a public address, it is a path on this host.
    fn doc_url(&self, code: ErrorCode) -> String {
        let root = self.public_url.as_deref().unwrap_or_default();
        format!("{root}{}", code.page_path())
    }
}

/// The body of a failure in the envelope of all responses.
#[derive(Serialize)]
struct FailureBody<'a> {
    success: bool,
    message: &'a str,
    data: (),
    error_code: &'a str,
    doc_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    explanations: &'a [Members],
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<&'a [Value]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_suffices: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a Members>,
    request_id: &'a str,
}

/// The body of a failure as a problem document (RFC 9457).
#[derive(Serialize)]
struct ProblemBody<'a> {
    /// The address of the page about the error code.
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    error_code: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<&'a [Value]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_suffices: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a Members>,
    request_id: &'a str,
}

pub(crate) fn render_failure(error: &ApiError, prefs: &ResponsePrefs) -> HttpResponse {
    let mut answer = HttpResponse::build(error.status);
    if let Some(wait) = error.retry_after {
        answer.insert_header((RETRY_AFTER, RetryAfter::seconds(wait)));
    }
    if !error.allowed_methods.is_empty() {
        let methods: Vec<_> = error
            .allowed_methods
            .iter()
            .map(ToString::to_string)
            .collect();
        answer.insert_header((ALLOW, methods.join(", ")));
    }
    if error.status == StatusCode::REQUEST_TIMEOUT {
        // Otherwise the remaining bytes of an unread body would be read as the next request.
        answer.force_close();
    }
    if error.status == StatusCode::UNAUTHORIZED {
        answer.insert_header((WWW_AUTHENTICATE, CHALLENGE));
    }
    let mut answer = if prefs.wants_problem {
        answer.insert_header((CONTENT_TYPE, "application/problem+json"));
        answer.json(problem_body(error, prefs))
    } else {
        answer.json(failure_body(error, prefs))
    };
    answer.extensions_mut().insert(LoggedFailure::from(error));
    answer
}

fn failure_body<'a>(error: &'a ApiError, prefs: &'a ResponsePrefs) -> FailureBody<'a> {
    let faults = &error.faults;
    FailureBody {
        success: false,
        message: &error.message,
        data: (),
        error_code: error.code.as_str(),
        doc_url: prefs.doc_url(error.code),
        errors: (!faults.is_empty()).then(|| json!(faults.by_path())),
        explanations: &error.details.explanations,
        patch: error.details.patch.as_deref(),
        patch_suffices: error.details.patch_suffices,
        retryable: error.retryable,
        queue: error.details.queue.as_ref(),
        request_id: &prefs.request_id,
    }
}

fn problem_body<'a>(error: &'a ApiError, prefs: &'a ResponsePrefs) -> ProblemBody<'a> {
    // The details already show the first faults, so only the remaining faults are added.
    let explained = &error.details.errors;
    let remaining = error.faults.iter().skip(explained.len());
    let remaining = remaining.map(problem_entry);
    ProblemBody {
        r#type: prefs.doc_url(error.code),
        title: error.status.canonical_reason().unwrap_or_default(),
        status: error.status.as_u16(),
        detail: &error.message,
        error_code: error.code.as_str(),
        errors: explained.iter().cloned().chain(remaining).collect(),
        patch: error.details.patch.as_deref(),
        patch_suffices: error.details.patch_suffices,
        retryable: error.retryable,
        queue: error.details.queue.as_ref(),
        request_id: &prefs.request_id,
    }
}

fn problem_entry(fault: &Fault) -> Value {
    json!({ "pointer": uri_pointer(&fault.path), "rule": fault.rule(), "detail": fault.to_string() })
}

/// Converts the dotted path of a field to a JSON Pointer into the body, written as a URI fragment such as `#/lines/0`.
pub(crate) fn uri_pointer(path: &str) -> String {
    format!("#{}", json_pointer(path))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actix_web::body::to_bytes;
    use actix_web::http::Method;

    use super::*;
    use crate::domain::kernel::fault::Faults;

    async fn body(error: &ApiError, wants_problem: bool) -> Value {
        let answer = render_failure(
            error,
            &ResponsePrefs {
                request_id: "r-1".into(),
                wants_problem,
                ..ResponsePrefs::default()
            },
        );
        strict_json::from_untrusted(&to_bytes(answer.into_body()).await.unwrap()).unwrap()
    }

    fn two_faults() -> ApiError {
        let faults: Faults = [
            Fault::new(
                "customer.email",
                "email",
                "The customer.email field is odd.",
            ),
            Fault::new(
                "invoice_lines.0.quantity",
                "min",
                "The quantity is too small.",
            ),
        ]
        .into_iter()
        .collect();
        faults.into()
    }

    #[actix_web::test]
    async fn field_errors_stand_below_their_dot_paths() {
        insta::assert_snapshot!(format!("{:#}", body(&two_faults(), false).await));
    }

    #[actix_web::test]
    async fn a_problem_document_points_into_the_body() {
        insta::assert_snapshot!(format!("{:#}", body(&two_faults(), true).await));
    }

    #[actix_web::test]
    async fn a_failure_without_faults_has_no_errors() {
        let body = body(&ApiError::invoice_not_found(), false).await;
        assert_eq!(
            body,
            json!({
                "success": false, "message": "Invoice not found", "data": null,
                "error_code": "INVOICE_NOT_FOUND", "doc_url": "/docs/errors/INVOICE_NOT_FOUND",
                "request_id": "r-1"
            })
        );
    }

    #[actix_web::test]
    async fn a_failure_names_the_page_about_its_code_at_the_public_address() {
        let prefs = ResponsePrefs {
            public_url: Some("https://e.example".to_owned()),
            ..ResponsePrefs::default()
        };
        for (wants_problem, name) in [(false, "doc_url"), (true, "type")] {
            let prefs = ResponsePrefs {
                wants_problem,
                ..prefs.clone()
            };
            let answer = render_failure(&ApiError::invoice_not_found(), &prefs);
            let text = to_bytes(answer.into_body()).await.unwrap();
            let body: Value = strict_json::from_untrusted(&text).unwrap();
            assert_eq!(
                body[name],
                "https://e.example/docs/errors/INVOICE_NOT_FOUND"
            );
        }
    }

    #[test]
    fn a_wait_is_rounded_up_to_whole_seconds_and_is_at_least_one() {
        let prefs = ResponsePrefs::default();
        for (millis, seconds) in [(0, "1"), (400, "1"), (1_000, "1"), (1_001, "2")] {
            let error = ApiError::new(ErrorCode::Overloaded, "")
                .with_retry_after(Duration::from_millis(millis));
            assert_eq!(
                render_failure(&error, &prefs)
                    .headers()
                    .get(RETRY_AFTER)
                    .unwrap(),
                seconds
            );
        }
    }

    #[test]
    fn a_401_names_the_authentication_scheme() {
        let prefs = ResponsePrefs::default();
        let challenge = |code| {
            render_failure(&ApiError::new(code, ""), &prefs)
                .headers()
                .get(WWW_AUTHENTICATE)
                .cloned()
        };
        for code in [ErrorCode::Unauthenticated, ErrorCode::InvalidApiKey] {
            assert_eq!(
                challenge(code).unwrap(),
                r#"ApiKey realm="einvoice", header="x-api-key""#
            );
        }
        assert_eq!(challenge(ErrorCode::KeyNotRecognized), None);
    }

    #[test]
    fn the_failure_for_a_refused_method_names_the_allowed_methods() {
        let prefs = ResponsePrefs {
            wants_problem: true,
            ..ResponsePrefs::default()
        };
        let answer = render_failure(
            &ApiError::method_not_allowed(vec![Method::GET, Method::PUT]),
            &prefs,
        );
        assert_eq!(answer.headers().get(ALLOW).unwrap(), "GET, PUT");
        for (allowed, end) in [
            (vec![], "that method"),
            (vec![Method::PATCH], "that method: use PATCH"),
            (vec![Method::GET, Method::HEAD], "that method: use GET"),
            (vec![Method::HEAD], "that method: use HEAD"),
            (
                vec![Method::GET, Method::HEAD, Method::PUT, Method::POST],
                "that method: use GET, PUT or POST",
            ),
        ] {
            let message = ApiError::method_not_allowed(allowed).message;
            assert!(message.ends_with(end), "{message}");
        }
        assert_eq!(
            answer.headers().get(CONTENT_TYPE).unwrap(),
            "application/problem+json"
        );
    }
}
