//! The outermost middleware: addresses without NUL, request id, log span, client's address, access log, panics, and
//! failure bodies.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    ACCEPT, Accept, Header as _, HeaderMap, HeaderName, HeaderValue, Quality,
    STRICT_TRANSPORT_SECURITY,
};
use actix_web::http::{ConnectionType, StatusCode};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpResponse, ResponseError, web};
use futures_util::FutureExt;
use timing::clock;
use timing::trace::{Span, SpanKind, TRACEPARENT, TraceContext};
use tracing::Instrument;
use uuid::Uuid;

use crate::actors::taxpayer::acting::run_request;
use crate::http::extract::nul;
use crate::http::limits::Connection;
use crate::http::middleware::access_log::{AccessRecord, RequestTimer};
use crate::http::middleware::client_address::ClientAddress;
use crate::http::middleware::content_policy::add_content_policy;
use crate::http::middleware::request_log::PendingLogEntry;
use crate::http::middleware::unread_body::{BodyConnection, RequestStream};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::limit_warnings;
use crate::http::respond::error::ApiError;
use crate::http::respond::render::{self, ResponsePrefs};
use crate::http::state::ApiState;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The trace of the request (W3C Trace Context, level 2). It has the form of `traceparent`.
const TRACE_RESPONSE: HeaderName = HeaderName::from_static("traceresponse");
/// The trace of the caller.
const TRACEPARENT_HEADER: HeaderName = HeaderName::from_static(TRACEPARENT);
const REQUEST_ID_CHARS_MAX: usize = 128;
/// Tells browsers to use only TLS for a year (RFC 6797). Sent in production only.
const ONLY_TLS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Runs a request and writes the access log. Use as `App::wrap(from_fn(http::request_context))`.
pub async fn request_context<B>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error>
where
    B: MessageBody + 'static,
{
    nul::replace_nul_in_address(&mut request);
    let request_id = find_request_id(&request);
    let span = begin_span(&request, &request_id);
    let state = request.app_data::<web::Data<ApiState>>().cloned();
    let mut prefs = response_prefs(&request, request_id, span.context());
    prefs.public_url = state
        .as_ref()
        .and_then(|state| state.settings.public_url.clone());
    request.extensions_mut().insert(prefs.clone());
    let client = find_client_address(&request, state.as_deref());
    request.extensions_mut().insert(ClientAddress(client));
    let timer = RequestTimer::begin(&request, client, span);
    let log_entry = PendingLogEntry::begin(&request);
    let connection = request.conn_data::<Connection>().cloned();
    if let Some(connection) = &connection {
        connection.mark_at_work();
    }
    let body_connection = connection
        .clone()
        .map(|connection| BodyConnection { connection, client });
    let stream = RequestStream::take_payload(&mut request, body_connection);
    let log_span = tracing::info_span!(
        "request",
        request_id = prefs.request_id,
        trace_id = prefs.trace.id()
    );
    let trace = prefs.trace;
    let answer = async {
        let outcome = AssertUnwindSafe(run_request(async { next.call(request).await }))
            .catch_unwind()
            .await;
        let failure = match outcome {
            Ok(Ok(response)) => {
                let mut response = render_error(response.map_into_boxed_body(), &prefs);
                add_common_headers(response.headers_mut(), &prefs);
                limit_warnings(response.headers_mut());
                let state = state.as_deref().map(Arc::as_ref);
                if let Some(state) = state {
                    set_connection_rules(&mut response, state);
                }
                timer.end(&AccessRecord::from_response(&response), state);
                let response = log_entry.end(state, &prefs, response);
                return Ok(finish_request_body(response, stream).await);
            }
            Ok(Err(error)) => to_api_error(&error, error.as_response_error().status_code()),
            Err(panic) => ApiError::internal(panic_text(panic.as_ref())),
        };
        let state = state.as_deref().map(Arc::as_ref);
        timer.end(&AccessRecord::from_failure(&failure), state);
        log_entry.end_without_answer(state, &prefs, &failure);
        Err(abandon_request(failure, prefs, stream))
    };
    let answer = trace.scope(answer).instrument(log_span).await;
    if let Some(connection) = connection {
        connection.mark_waiting_for_client();
    }
    answer
}

/// Returns the client's address. If a trusted proxy sent the request, this is the address that the proxy forwards.
fn find_client_address(request: &ServiceRequest, state: Option<&Arc<ApiState>>) -> Option<IpAddr> {
    match state {
        Some(state) => {
            let proxies = &state.settings.trusted_proxies;
            if state.settings.sessions.is_secure {
                proxies.warn_about_untrusted_forwarder(request.peer_addr(), request.headers());
            }
            proxies.client_address(request.peer_addr(), request.headers())
        }
        None => request.peer_addr().map(|peer| peer.ip()),
    }
}

/// Tells the client to close its connection if this process stops and, in production, to use only TLS from now on.
fn set_connection_rules(response: &mut ServiceResponse<BoxBody>, state: &ApiState) {
    if state.stopping.is_requested() {
        response
            .response_mut()
            .head_mut()
            .set_connection_type(ConnectionType::Close);
    }
    if state.settings.sessions.is_secure {
        response
            .headers_mut()
            .insert(STRICT_TRANSPORT_SECURITY, ONLY_TLS);
    }
}

async fn finish_request_body(
    response: ServiceResponse<BoxBody>,
    stream: Option<RequestStream>,
) -> ServiceResponse<BoxBody> {
    let Some(stream) = stream else {
        return response;
    };
    let (request, response) = response.into_parts();
    ServiceResponse::new(request, stream.read_rest_or_close(response).await)
}

/// Returns the id that the caller gave the request, or a new one.
fn find_request_id(request: &ServiceRequest) -> String {
    let given = header_text(request, &REQUEST_ID).filter(|id| is_safe_request_id(id));
    given.map_or_else(|| clock::new_id().to_string(), str::to_owned)
}

/// Begins the span of a request, in the trace of its caller or else in a new trace. The id of a new trace is the
/// request id if that is a UUID, so that logs and traces of a request are found by one id.
fn begin_span(request: &ServiceRequest, request_id: &str) -> Span {
    let name = format_args!("{}", request.method());
    let caller = header_text(request, &TRACEPARENT_HEADER).and_then(|text| text.parse().ok());
    if let Some(caller) = caller {
        return Span::remote_child(caller, SpanKind::Server, name);
    }
    let id = Uuid::try_parse(request_id)
        .ok()
        .filter(|id| !id.is_nil())
        .unwrap_or_else(clock::new_id);
    Span::root(id, SpanKind::Server, name)
}

fn header_text<'a>(request: &'a ServiceRequest, name: &HeaderName) -> Option<&'a str> {
    request.headers().get(name)?.to_str().ok()
}

fn response_prefs(
    request: &ServiceRequest,
    request_id: String,
    trace: TraceContext,
) -> ResponsePrefs {
    let wants_problem = request.headers().contains_key(ACCEPT)
        && Accept::parse(request).is_ok_and(|accept| prefers_problem(&accept));
    ResponsePrefs {
        request_id,
        trace,
        wants_problem,
        public_url: None,
    }
}

/// True if `Accept` ranks `application/problem+json` at least as high as plain JSON (RFC 9110, section 12.5.1).
fn prefers_problem(accept: &Accept) -> bool {
    let quality = |range: &str| {
        let named = accept
            .iter()
            .filter(|item| item.item.essence_str() == range);
        named.map(|item| item.quality).max()
    };
    let plain = ["application/json", "application/*", "*/*"]
        .into_iter()
        .find_map(quality);
    let problem = quality("application/problem+json").filter(|quality| *quality > Quality::ZERO);
    problem.is_some_and(|problem| plain.is_none_or(|plain| problem >= plain))
}

/// Returns true if a request id has 1 to 128 characters that need no quoting in a header, a log line or a URL.
fn is_safe_request_id(id: &str) -> bool {
    (1..=REQUEST_ID_CHARS_MAX).contains(&id.len())
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=@".contains(&byte))
}

/// If the response carries an error, logs the error and renders the body for it.
fn render_error(
    response: ServiceResponse<BoxBody>,
    prefs: &ResponsePrefs,
) -> ServiceResponse<BoxBody> {
    let Some(error) = response.response().error() else {
        return response;
    };
    let mut answer = match error.as_error::<ApiError>() {
        Some(error) => {
            log_cause(error);
            render::render_failure(error, prefs)
        }
        None => render::render_failure(&to_api_error(error, response.status()), prefs),
    };
    // Keep the headers that inner middleware added to the failed response, including repeated ones.
    let rendered: Vec<_> = answer.headers().keys().cloned().collect();
    for (name, value) in response.headers() {
        if !rendered.contains(name) {
            answer.headers_mut().append(name.clone(), value.clone());
        }
    }
    response.into_response(answer)
}

/// Converts an error of the framework into an `ApiError`.
fn to_api_error(error: &Error, status: StatusCode) -> ApiError {
    let code = match status {
        StatusCode::NOT_FOUND => ErrorCode::RouteNotFound,
        StatusCode::METHOD_NOT_ALLOWED => ErrorCode::MethodNotAllowed,
        StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::PayloadTooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorCode::UnsupportedMediaType,
        status if status.is_client_error() => ErrorCode::MalformedJson,
        _ => return ApiError::internal(error),
    };
    ApiError::new(code, error.to_string())
}

fn log_cause(error: &ApiError) {
    let Some(cause) = error.cause.as_deref() else {
        return;
    };
    if error.code == ErrorCode::InternalError {
        tracing::error!(code = error.code.as_str(), cause, "a request failed");
    } else {
        tracing::warn!(
            code = error.code.as_str(),
            cause,
            "a request could not be served"
        );
    }
}

/// Adds the headers that every response has.
fn add_common_headers(headers: &mut HeaderMap, prefs: &ResponsePrefs) {
    insert_request_and_trace_ids(headers, prefs);
    add_content_policy(headers);
}

/// Adds the headers with the request id and with the trace to the response.
fn insert_request_and_trace_ids(headers: &mut HeaderMap, prefs: &ResponsePrefs) {
    for (name, id) in [
        (REQUEST_ID, prefs.request_id.as_str()),
        (TRACE_RESPONSE, &prefs.trace.to_string()),
    ] {
        if let Ok(id) = HeaderValue::from_str(id) {
            headers.insert(name, id);
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref().map(String::as_str));
    format!("a handler panicked: {}", text.unwrap_or("without a text"))
}

/// A failure without a response, such as a panic, and the parts of the request that the response needs.
#[derive(Debug)]
struct AbandonedRequest {
    error: ApiError,
    prefs: ResponsePrefs,
    stream: Option<RequestStream>,
}

fn abandon_request(error: ApiError, prefs: ResponsePrefs, stream: Option<RequestStream>) -> Error {
    log_cause(&error);
    AbandonedRequest {
        error,
        prefs,
        stream,
    }
    .into()
}

impl std::fmt::Display for AbandonedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl ResponseError for AbandonedRequest {
    fn status_code(&self) -> StatusCode {
        self.error.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = render::render_failure(&self.error, &self.prefs);
        add_common_headers(response.headers_mut(), &self.prefs);
        match self.stream.clone() {
            Some(stream) => stream.close_unless_read(response),
            None => response,
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::App;
    use actix_web::body::to_bytes;
    use actix_web::dev::Service as _;
    use actix_web::middleware::from_fn;
    use actix_web::test::{TestRequest, init_service};
    use serde_json::{Value, json};

    use super::*;

    /// Returns the preferences for the response to this request.
    fn prefs(request: TestRequest) -> ResponsePrefs {
        let request = request.to_srv_request();
        let id = find_request_id(&request);
        let trace = begin_span(&request, &id).context();
        response_prefs(&request, id, trace)
    }

    fn wants_problem(accept: &str) -> bool {
        prefs(TestRequest::default().insert_header((ACCEPT, accept))).wants_problem
    }

    #[test]
    fn a_problem_document_is_sent_only_if_it_is_asked_for() {
        for accept in [
            "application/problem+json",
            "Application/Problem+JSON; charset=utf-8",
            "application/json, application/problem+json",
            "application/json;q=0.5, application/problem+json;q=0.6",
            "application/problem+json, */*;q=0.1",
            "odd, application/problem+json",
        ] {
            assert!(wants_problem(accept), "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "application/json",
            "application/problem+json;q=0",
            "application/problem+json; q=0.0, */*",
            "application/problem+json;q=0.1, application/json",
            "application/problem+jsonx",
            "application/x; of=\"application/problem+json\"",
        ] {
            assert!(!wants_problem(accept), "{accept}");
        }
        assert!(!prefs(TestRequest::default()).wants_problem);
    }

    #[test]
    fn a_request_id_that_is_not_safe_is_replaced() {
        let used = |id: &str| prefs(TestRequest::default().insert_header((REQUEST_ID, id)));
        for id in ["", "a b", "a\tb", "a\"b", &"x".repeat(129), "\u{e9}"] {
            assert_eq!(used(id).request_id.len(), 36, "{id:?}");
        }
        for id in ["order-77_a.b", &"x".repeat(128)] {
            assert_eq!(used(id).request_id, id);
        }
    }

    #[test]
    fn the_trace_of_the_caller_continues_and_without_one_a_trace_begins() {
        let trace = |header: &str| {
            let request = TestRequest::default().insert_header((TRACEPARENT, header));
            prefs(request).trace
        };
        let caller = TraceContext::default();
        let own = trace(&caller.to_string());
        assert_eq!(own.id(), caller.id());
        assert_ne!(own, caller, "the request has a span of its own");
        let odd = [trace("odd").id(), trace("odd").id()];
        assert_ne!(odd[0], odd[1], "each is a trace of its own");
    }

    #[test]
    fn a_new_trace_has_the_id_of_its_request() {
        for id in [None, Some("0b8c8d9e-6d35-4b4f-9d0a-6f0b3f6f2f11")] {
            let request = TestRequest::default();
            let request = match id {
                Some(id) => request.insert_header((REQUEST_ID, id)),
                None => request,
            };
            let used = prefs(request);
            assert_eq!(used.trace.id(), used.request_id.replace('-', ""));
        }
        let named = prefs(TestRequest::default().insert_header((REQUEST_ID, "order-77")));
        assert_eq!(named.trace.id().len(), 32);
    }

    #[test]
    fn a_failure_keeps_the_headers_that_were_added_to_it() {
        let request = TestRequest::default().to_srv_request();
        let mut response: ServiceResponse<BoxBody> =
            request.error_response(ApiError::invoice_not_found());
        let added = [
            ("x-system-warning", "unknown query parameter: x"),
            (
                "x-system-warning",
                "ignored request body: this call takes none",
            ),
            ("cache-control", "no-store"),
            ("content-type", "text/plain"),
        ];
        for (name, value) in added {
            let value = HeaderValue::from_static(value);
            let headers = response.headers_mut();
            headers.append(HeaderName::from_static(name), value);
        }
        let answer = render_error(response, &ResponsePrefs::default());
        for (name, count) in [
            ("x-system-warning", 2),
            ("cache-control", 1),
            ("content-type", 1),
        ] {
            assert_eq!(answer.headers().get_all(name).count(), count, "{name}");
        }
        let kind = answer.headers().get("content-type").unwrap();
        assert_eq!(kind, "application/json", "the type of the rendered body");
    }

    async fn raise_panic() -> HttpResponse {
        std::future::ready(()).await;
        panic!("boom")
    }

    #[actix_web::test]
    async fn a_handler_that_panics_answers_500_in_the_envelope() {
        let app = App::new()
            .wrap(from_fn(request_context))
            .route("/panic", web::get().to(raise_panic));
        let app = init_service(app).await;
        let request = TestRequest::get()
            .uri("/panic")
            .insert_header((REQUEST_ID, "mine-2"))
            .to_request();
        let response = app.call(request).await.err().unwrap().error_response();
        let request_id = response
            .headers()
            .get(REQUEST_ID)
            .unwrap()
            .to_str()
            .unwrap();
        assert_eq!((response.status().as_u16(), request_id), (500, "mine-2"));
        assert!(response.headers().contains_key("content-security-policy"));
        let bytes = to_bytes(response.into_body()).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let json: Value = strict_json::from_trusted(&text).unwrap();
        assert_eq!(
            (&json["error_code"], &json["request_id"]),
            (&json!("INTERNAL_ERROR"), &json!("mine-2"))
        );
        assert!(!text.contains("boom"), "{text}");
    }
}
