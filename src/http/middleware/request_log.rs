//! Puts the requests of accounts into their request log. The policy of a path records the caller and the sent body; the
//! outermost middleware adds the response, even if the request failed. Nothing here waits for the database.
//!
//! Only requests with a valid key belong to an account. No key is looked up for an unknown path, so such a request is
//! not logged.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use actix_web::http::{Method, StatusCode};
use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use serde::Deserialize;
use timing::clock;

use crate::actors::request_log::{KeptDetail, RequestKind};
use crate::domain::access::payer::PayingAccount;
use crate::domain::request_log::{
    BODY_BYTES_MAX, LoggedBody, LoggedRequest, PATH_CHARS_MAX, RequestOwner, redact,
};
use crate::http::extract::api_key_label::api_key_label;
use crate::http::extract::auth;
use crate::http::extract::body_text::BodyText;
use crate::http::respond::error::ApiError;
use crate::http::respond::logged_failure::{LoggedFailure, to_printable};
use crate::http::respond::render::{self, ResponsePrefs};
use crate::http::state::ApiState;

/// The start of all paths whose requests are logged.
const LOGGED_PATH_PREFIX: &str = "/v1/";

/// The log entry of a request while it is collected. The middleware shares it with the policy of the path.
#[derive(Clone)]
pub(crate) struct PendingLogEntry(Rc<PendingEntryState>);

struct PendingEntryState {
    started: Instant,
    call: RefCell<Option<LoggedCall>>,
}

/// A request of an account, and the parts of it that are logged.
struct LoggedCall {
    account: PayingAccount,
    key: String,
    method: Method,
    path: String,
    route: &'static str,
    /// The invoice that the path names.
    invoice: Option<String>,
    is_read: bool,
    sent_body: SentBody,
    /// The logged part of a successful response; `None` before there is a response, for a failure, and if the log
    /// does not keep this response.
    success: Option<LoggedSuccess>,
}

/// The first bytes of a body, and the length of the whole body.
#[derive(Default)]
struct SentBody {
    start: Vec<u8>,
    bytes: u64,
    is_json: bool,
}

struct LoggedSuccess {
    detail: KeptDetail,
    body: LoggedBody,
    invoice: Option<String>,
}

struct LoggedFailedAnswer {
    status: StatusCode,
    error_code: Option<String>,
    body: LoggedBody,
}

/// The outcome of a request, for the log.
struct LoggedOutcome {
    status: StatusCode,
    error_code: Option<String>,
    detail: KeptDetail,
    response: LoggedBody,
    invoice: Option<String>,
}

impl PendingLogEntry {
    /// Creates the entry of a request that has just arrived, and puts it into the request, where the policy of the path
    /// finds it.
    pub(crate) fn begin(request: &ServiceRequest) -> Self {
        let entry = Self(Rc::new(PendingEntryState {
            started: Instant::now(),
            call: RefCell::default(),
        }));
        request.extensions_mut().insert(entry.clone());
        entry
    }

    /// Logs the answer of a request of an account. Returns the answer, whose body may have been read and put back.
    pub(crate) fn end(
        &self,
        state: Option<&ApiState>,
        prefs: &ResponsePrefs,
        response: ServiceResponse<BoxBody>,
    ) -> ServiceResponse<BoxBody> {
        let (Some(state), Some(mut call)) = (state, self.0.call.take()) else {
            return response;
        };
        let status = response.status();
        let is_failure = status.is_client_error() || status.is_server_error();
        if !is_failure {
            if let Some(success) = call.success.take() {
                let outcome = LoggedOutcome {
                    status,
                    error_code: None,
                    detail: success.detail,
                    response: success.body,
                    invoice: success.invoice,
                };
                self.push_entry(state, &prefs.request_id, call, outcome);
            }
            return response;
        }
        let failure = response
            .response()
            .extensions()
            .get::<LoggedFailure>()
            .cloned();
        let (request, answer) = response.into_parts();
        let (answer, body) = read_body(answer);
        let logged_body = body.map(|body| json_body(answer.headers(), &body));
        let failed = LoggedFailedAnswer {
            status,
            error_code: failure.map(|failure| failure.code.to_owned()),
            body: logged_body.unwrap_or_else(|| LoggedBody::without_text(0)),
        };
        self.push_failure(state, &prefs.request_id, call, failed);
        ServiceResponse::new(request, answer)
    }

    /// Logs a request that failed without an answer, for example by a panic.
    pub(crate) fn end_without_answer(
        &self,
        state: Option<&ApiState>,
        prefs: &ResponsePrefs,
        error: &ApiError,
    ) {
        let (Some(state), Some(call)) = (state, self.0.call.take()) else {
            return;
        };
        let (answer, body) = read_body(render::render_failure(error, prefs));
        let logged_body = body.map(|body| json_body(answer.headers(), &body));
        let failed = LoggedFailedAnswer {
            status: error.status,
            error_code: Some(error.code.as_str().to_owned()),
            body: logged_body.unwrap_or_else(|| LoggedBody::without_text(0)),
        };
        self.push_failure(state, &prefs.request_id, call, failed);
    }

    fn push_failure(
        &self,
        state: &ApiState,
        request_id: &str,
        call: LoggedCall,
        failed: LoggedFailedAnswer,
    ) {
        let owner = call.account.owner;
        let kept_detail =
            state
                .request_log
                .decide_kept_detail(owner, RequestKind::Failed, state.now());
        if let Some(detail) = kept_detail {
            let outcome = LoggedOutcome {
                status: failed.status,
                error_code: failed.error_code,
                detail,
                response: failed.body,
                invoice: None,
            };
            self.push_entry(state, request_id, call, outcome);
        }
    }

    fn push_entry(
        &self,
        state: &ApiState,
        request_id: &str,
        call: LoggedCall,
        outcome: LoggedOutcome,
    ) {
        let has_bodies = outcome.detail == KeptDetail::WithBodies;
        let sent = &call.sent_body;
        let request = if has_bodies && sent.is_json {
            LoggedBody::from_json(&sent.start, sent.bytes)
        } else {
            LoggedBody::without_text(sent.bytes)
        };
        let sent_irn = sent.is_json.then(|| irn_in_body(&sent.start)).flatten();
        let response = outcome.response;
        let duration = self.0.started.elapsed();
        state.request_log.push(LoggedRequest {
            id: clock::new_id(),
            at: start_time(state, duration),
            caller: RequestOwner {
                taxpayer: call.account.owner.taxpayer(),
                integrator: call.account.integrator,
            },
            request_id: request_id.to_owned(),
            method: call.method.to_string(),
            path: call.path,
            route: call.route.to_owned(),
            status: outcome.status.as_u16(),
            error_code: outcome.error_code,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            key: call.key,
            invoice: call.invoice.or(outcome.invoice).or(sent_irn),
            request,
            response: if has_bodies {
                response
            } else {
                LoggedBody::without_text(response.bytes)
            },
        });
    }
}

fn start_time(state: &ApiState, duration: Duration) -> jiff::Timestamp {
    let now = state.now();
    now.checked_sub(duration).unwrap_or(now)
}

/// Records the caller of a path and the sent body. `route` is the pattern of the path.
pub(crate) fn record_request(
    state: &ApiState,
    request: &ServiceRequest,
    route: &'static str,
    is_read: bool,
) {
    if !route.starts_with(LOGGED_PATH_PREFIX) || !state.request_log.is_on() {
        return;
    }
    let request = request.request();
    let Some(account) = auth::paying_account(request) else {
        return;
    };
    let call = LoggedCall {
        account,
        key: api_key_label(request),
        method: request.method().clone(),
        path: path_without_secrets(request),
        route,
        invoice: invoice_in_path(request, route),
        is_read,
        sent_body: SentBody::from_request(request),
        success: None,
    };
    if let Some(entry) = request.extensions().get::<PendingLogEntry>() {
        entry.0.call.replace(Some(call));
    }
}

/// Records a successful response, before its body is compressed. Returns the answer, whose body may have been read and
/// put back.
pub(crate) fn record_answer(
    state: &ApiState,
    request: &HttpRequest,
    answer: HttpResponse,
) -> HttpResponse {
    let status = answer.status();
    if answer.error().is_some() || status.is_client_error() || status.is_server_error() {
        return answer;
    }
    let entry = request.extensions().get::<PendingLogEntry>().cloned();
    let Some(entry) = entry else {
        return answer;
    };
    let mut pending_call = entry.0.call.borrow_mut();
    let Some(call) = pending_call.as_mut() else {
        return answer;
    };
    let kind = if call.is_read {
        RequestKind::GoodRead
    } else {
        RequestKind::GoodWrite
    };
    let kept_detail = state
        .request_log
        .decide_kept_detail(call.account.owner, kind, state.now());
    let Some(detail) = kept_detail else {
        return answer;
    };
    let holds_secret = answer.headers().contains_key(CACHE_CONTROL);
    let (answer, body) = read_body(answer);
    let length = body.as_ref().map_or(0, |body| body.len() as u64);
    call.success = Some(match body {
        Some(body) if detail == KeptDetail::WithBodies && !holds_secret => LoggedSuccess {
            detail,
            body: json_body(answer.headers(), &body),
            invoice: irn_in_body(&body),
        },
        _ => LoggedSuccess {
            detail,
            body: LoggedBody::without_text(length),
            invoice: None,
        },
    });
    answer
}

impl SentBody {
    /// Returns the start of the body that the policy has read. If no body was read, only the declared length is known.
    fn from_request(request: &HttpRequest) -> Self {
        let extensions = request.extensions();
        let Some(text) = extensions.get::<BodyText>() else {
            let declared = request.headers().get(CONTENT_LENGTH);
            let declared = declared.and_then(|length| length.to_str().ok());
            return Self {
                bytes: declared.map_or(0, |length| length.parse().unwrap_or(0)),
                ..Self::default()
            };
        };
        let length = text.bytes.len().min(BODY_BYTES_MAX);
        Self {
            start: text.bytes[..length].to_vec(),
            bytes: text.bytes.len() as u64,
            is_json: is_json(request.headers()),
        }
    }
}

/// Returns the response unchanged, and a copy of its body; `None` for a streamed body.
fn read_body(answer: HttpResponse) -> (HttpResponse, Option<Bytes>) {
    let (answer, body) = answer.into_parts();
    match body.try_into_bytes() {
        Ok(bytes) => (answer.set_body(BoxBody::new(bytes.clone())), Some(bytes)),
        Err(body) => (answer.set_body(body), None),
    }
}

fn json_body(headers: &HeaderMap, body: &Bytes) -> LoggedBody {
    if is_json(headers) {
        LoggedBody::from_json(body, body.len() as u64)
    } else {
        LoggedBody::without_text(body.len() as u64)
    }
}

/// True for JSON, also if no type is named: a body is JSON by default.
fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::to_str);
    content_type
        .is_none_or(|text| text.is_ok_and(|text| text.to_ascii_lowercase().contains("json")))
}

fn path_without_secrets(request: &HttpRequest) -> String {
    let query = request.query_string();
    let mark = if query.is_empty() { "" } else { "?" };
    let path = format!("{}{mark}{query}", request.path());
    to_printable(&redact(&path).text, PATH_CHARS_MAX)
}

/// Returns the id or the IRN of the invoice that a path names.
fn invoice_in_path(request: &HttpRequest, route: &str) -> Option<String> {
    let names = request.match_info();
    let name = if route.contains("/invoices/{id}") {
        names.get("id")
    } else {
        names.get("irn")
    };
    name.map(|name| to_printable(&redact(name).text, PATH_CHARS_MAX))
}

/// The members of a body that name an invoice.
#[derive(Deserialize)]
struct BodyWithIrn {
    irn: Option<String>,
    data: Option<InvoiceInData>,
}

/// The `data` member of a response about one invoice.
#[derive(Deserialize)]
struct InvoiceInData {
    irn: Option<String>,
}

/// Returns the IRN that a body names; `None` for a body beyond `BODY_BYTES_MAX`, which has many invoices.
fn irn_in_body(body: &[u8]) -> Option<String> {
    if body.len() > BODY_BYTES_MAX {
        return None;
    }
    let parsed: BodyWithIrn = strict_json::from_untrusted(body).ok()?;
    let irn = parsed.irn.or_else(|| parsed.data?.irn)?;
    Some(to_printable(&redact(&irn).text, PATH_CHARS_MAX))
}
