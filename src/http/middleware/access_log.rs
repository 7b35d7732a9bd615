//! The access log: one line for each response, with caller, address, route and outcome. A line never contains a key, a
//! body, a field's value or the token in a path.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use actix_web::HttpMessage;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderMap, USER_AGENT};
use actix_web::http::{Method, StatusCode};
use timing::trace::Span;

use crate::domain::access::api_key::KeyOwner;
use crate::domain::request_log::redact;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::respond::logged_failure::{LoggedFailure, to_printable};
use crate::http::state::ApiState;

/// The route that is logged for a request without a matching path.
const UNMATCHED_ROUTE: &str = "unmatched";
/// The paths that a secret token follows: of the authority's notices, of links to deliveries, of invitations, of links
/// to unsubscribe from mails, and of the public pages of invoices. A path that only ends like one, such as
/// `/ops/taxpayers/7/verify`, has no token.
const TOKEN_PATHS: [&str; 5] = [
    "authority/notifications/",
    "shared/deliveries/",
    "sign-in/invitation/",
    "sign-in/unsubscribe/",
    "verify/",
];
const USER_AGENT_CHARS_MAX: usize = 120;
const PATH_CHARS_MAX: usize = 200;

/// The pattern of the path that a request has matched, set by the policy of the path. It is kept so that the
/// framework need not search for it again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatchedRoute(pub(crate) &'static str);

/// The parts of a request that the access log shows, the time at which it arrived, and its span.
pub(crate) struct RequestTimer {
    method: Method,
    started: Instant,
    client: Option<IpAddr>,
    user_agent: Option<String>,
    span: Span,
}

/// The parts of a response that the access log shows.
pub(crate) struct AccessRecord {
    route: Option<&'static str>,
    status: StatusCode,
    account: Option<String>,
    failure: Option<LoggedFailure>,
    path: Option<String>,
}

impl AccessRecord {
    pub(crate) fn from_response(response: &ServiceResponse<BoxBody>) -> Self {
        let request = response.request();
        let account = request
            .extensions()
            .get::<KeyOwner>()
            .map(ToString::to_string);
        let status = response.status();
        Self {
            route: request
                .extensions()
                .get::<MatchedRoute>()
                .map(|route| route.0),
            status,
            account,
            failure: response
                .response()
                .extensions()
                .get::<LoggedFailure>()
                .cloned(),
            path: (status == StatusCode::NOT_FOUND).then(|| redact_path(request.uri().path())),
        }
    }

    /// Returns the record of a request that failed without a response, for example by a panic.
    pub(crate) fn from_failure(error: &ApiError) -> Self {
        let failure = Some(error.into());
        Self {
            route: None,
            status: error.status,
            account: None,
            failure,
            path: None,
        }
    }

    /// True if the response shows a defect of this service. The contract requires status 500 for some failures that are
    /// no defect, such as an access point that is offline. Such failures have error codes other than `INTERNAL_ERROR`.
    fn is_defect(&self) -> bool {
        let code = self.failure.as_ref().map(|failure| failure.code);
        let is_internal = code.is_none_or(|code| code == ErrorCode::InternalError.as_str());
        self.status == StatusCode::INTERNAL_SERVER_ERROR && is_internal
    }
}

impl RequestTimer {
    pub(crate) fn begin(request: &ServiceRequest, client: Option<IpAddr>, span: Span) -> Self {
        let user_agent = user_agent(request.headers());
        Self {
            method: request.method().clone(),
            started: Instant::now(),
            client,
            user_agent,
            span,
        }
    }

    /// Counts the request in the metrics, writes its line of the access log and ends its span.
    pub(crate) fn end(mut self, outcome: &AccessRecord, state: Option<&ApiState>) {
        let route = outcome.route.unwrap_or(UNMATCHED_ROUTE);
        let duration = self.started.elapsed();
        if let Some(state) = state {
            state
                .traffic
                .count_request(&self.method, route, outcome.status, duration);
            if outcome.is_defect() {
                state.traffic.count_broken_answer();
            }
        }
        let failure = outcome.failure.as_ref();
        self.describe_span(route, outcome.status, failure);
        tracing::info!(
            method = %self.method,
            route,
            status = outcome.status.as_u16(),
            duration_ms = millis(duration),
            account = outcome.account,
            peer = self.client.map(tracing::field::display),
            user_agent = self.user_agent,
            error_code = failure.map(|failure| failure.code),
            fields = failure.and_then(|failure| failure.fields.as_deref()),
            path = outcome.path,
            "answered"
        );
    }

    /// Adds the outcome to the span, by the names of OpenTelemetry's conventions. The path itself stays out, because it
    /// may hold a token.
    fn describe_span(&mut self, route: &str, status: StatusCode, failure: Option<&LoggedFailure>) {
        self.span.rename(format_args!("{} {route}", self.method));
        self.span
            .set_text("http.request.method", self.method.as_str());
        self.span.set_text("http.route", route);
        self.span
            .set_number("http.response.status_code", status.as_u16().into());
        if let Some(failure) = failure {
            self.span.set_text("error.type", failure.code);
        }
        if status.is_server_error() {
            self.span.mark_failed();
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

pub(crate) fn user_agent(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(USER_AGENT)?;
    Some(to_printable(
        &String::from_utf8_lossy(value.as_bytes()),
        USER_AGENT_CHARS_MAX,
    ))
}

/// Returns the path of a request for the log. Hides a token or a key, however the path is encoded, because even a
/// mistyped path may contain a valid one.
fn redact_path(path: &str) -> String {
    let decoded = percent_decode(path).to_ascii_lowercase();
    let segments: Vec<_> = decoded
        .split('/')
        .filter(|segment| !segment.is_empty())
        .collect();
    let normalized = segments.join("/");
    let token_path = TOKEN_PATHS.iter().find(|path| normalized.contains(*path));
    match token_path {
        Some(token_path) => format!("/{token_path}***"),
        None => to_printable(&redact(path).text, PATH_CHARS_MAX),
    }
}

fn percent_decode(path: &str) -> String {
    // The form decoder gives `+` and `&` a meaning that they do not have in a path, so both are encoded first.
    let pairs = format!("={}", path.replace('+', "%2B").replace('&', "%26"));
    url::form_urlencoded::parse(pairs.as_bytes())
        .map(|(_, value)| value.into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_the_contract_answers_with_500_is_no_defect() {
        let internal = StatusCode::INTERNAL_SERVER_ERROR;
        for (code, status, is_defect) in [
            (ErrorCode::InternalError, internal, true),
            (ErrorCode::HealthCheckDown, internal, false),
            (ErrorCode::AccessPointOffline, internal, false),
            (ErrorCode::NoCustomerAccessPoint, internal, false),
            (ErrorCode::InvoiceNotSigned, internal, false),
            (ErrorCode::ReportFailed, internal, false),
            // Transmit answers these with another status than other paths do.
            (ErrorCode::AuthorityUnavailable, internal, false),
            (ErrorCode::AuthorityRejected, internal, false),
        ] {
            let error = ApiError::new(code, "It failed").with_status(status);
            let record = AccessRecord::from_failure(&error);
            assert_eq!(record.is_defect(), is_defect, "{code:?}");
        }
        let busy = AccessRecord::from_failure(&ApiError::new(ErrorCode::Overloaded, "busy"));
        assert!(!busy.is_defect());
        // A page that fails has no error code.
        let unnamed = AccessRecord {
            failure: None,
            ..AccessRecord::from_failure(&ApiError::internal("down"))
        };
        assert!(unnamed.is_defect());
    }

    #[test]
    fn a_path_is_shown_unless_it_may_hold_the_token() {
        assert_eq!(redact_path("/v1/nowhere/%C3%A9"), "/v1/nowhere/%C3%A9");
        assert_eq!(
            redact_path(&format!("/{}", "x".repeat(500))).len(),
            PATH_CHARS_MAX
        );
        for path in [
            "/authority/notifications/secret-token",
            "/authority/notifications/secret-token/",
            "//authority/notifications/secret-token",
            "/authority//notifications/secret-token",
            "/authority/%6eotifications/secret-token",
            "/authority%2Fnotifications%2fsecret-token",
            "/Authority/Notifications/secret-token",
            "/a+b/authority/notifications/secret-token",
        ] {
            assert_eq!(redact_path(path), "/authority/notifications/***", "{path}");
        }
        for (path, shown) in [
            ("/sign-in/invitation/TOKEN", "/sign-in/invitation/***"),
            ("/sign-in/invitation/TOKEN/", "/sign-in/invitation/***"),
            ("/sign-in/invitation/TOKEN.", "/sign-in/invitation/***"),
            ("/Sign-In/%69nvitation//TOKEN", "/sign-in/invitation/***"),
            (
                "/sign-in/unsubscribe/contact-1/invoices/SIGNATURE/",
                "/sign-in/unsubscribe/***",
            ),
            (
                "/sign-in/%75nsubscribe/contact-1//invoices/SIGNATURE",
                "/sign-in/unsubscribe/***",
            ),
            ("/v1/tpk_SECRET-1/invoices", "/v1/tpk_(hidden)"),
            ("/v1/x-api-key=sik_SECRET", "/v1/x-api-key=(hidden)"),
            ("/v1/%74pk%5FSECRET", "/v1/%74pk%5F(hidden)"),
            ("/ops/opk_SECRET", "/ops/opk_(hidden)"),
            ("/webhooks/whsec_SECRET/", "/webhooks/whsec_(hidden)"),
            ("/verify/TOKEN", "/verify/***"),
            ("/verify/TOKEN/", "/verify/***"),
            ("/shared/deliveries/TOKEN)", "/shared/deliveries/***"),
            ("/ops/taxpayers/7/verify", "/ops/taxpayers/7/verify"),
            ("/verify", "/verify"),
        ] {
            assert_eq!(redact_path(path), shown, "{path}");
        }
    }

    #[test]
    fn a_user_agent_is_short_and_printable() {
        let mut headers = HeaderMap::new();
        assert_eq!(user_agent(&headers), None);
        let odd = format!("agent\t\u{e9}{}", "x".repeat(500));
        headers.insert(
            USER_AGENT,
            actix_web::http::header::HeaderValue::from_bytes(odd.as_bytes()).unwrap(),
        );
        let shown = user_agent(&headers).unwrap();
        assert!(
            shown.starts_with("agent??x") && shown.len() == USER_AGENT_CHARS_MAX,
            "{shown}"
        );
    }
}
