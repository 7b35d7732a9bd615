//! The client of the authority. Every call is admitted, sent over HTTP, classified, counted and logged.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Client, RequestBuilder, Url};
use secrecy::SecretString;
use serde_json::Value;
use timing::clock::SharedClock;
use timing::histograms::Histograms;
use timing::trace::{TRACEPARENT, TraceContext};

use crate::admission::breaker::BreakerView;
use crate::admission::call_limits::LimitView;
use crate::admission::call_origin::{CallOrigin, CallerAccount};
use crate::admission::call_stats::{CallCounters, CallLabels, CallOutcome, CallStats};
use crate::admission::call_window::RecentCalls;
use crate::admission::permit::CallAdmission;
use crate::client_settings::{
    AuthorityBuildError, ClientSettings, base_url_text, http_client, secret_header,
};
use crate::crypto::download::EncryptedDocument;
use crate::crypto::keys::CryptoError;
use crate::operation::Operation;
use crate::transport::answer::AuthorityAnswer;
use crate::transport::call_span::CallSpan;
use crate::transport::classify;
use crate::transport::exchange::{RawResponse, exchange};
use crate::transport::failure::{AuthorityFailure, Cause, CauseKind};
use crate::transport::request::AuthorityRequest;

/// The timeout of a liveness check.
const LIVENESS_CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The answer to one health check, for an operator who looks for a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthAnswer {
    /// True if the authority says that it is healthy.
    pub is_healthy: bool,
    /// True if the authority only asks to be called less often (HTTP 429).
    pub is_throttled: bool,
    /// The time that the authority's clock shows, in whole seconds, if its answer has a date.
    pub clock_time: Option<Timestamp>,
}

/// A client of the authority. Clones share connections, breakers, limits and counters.
#[derive(Clone)]
pub struct Authority {
    inner: Arc<ClientInner>,
    /// The account on whose behalf the client makes its calls.
    account: CallerAccount,
}

struct ClientInner {
    http: Client,
    base_url: String,
    api_key: SecretString,
    headers: [(&'static str, HeaderValue); 2],
    timeout: Duration,
    is_paused: bool,
    clock: SharedClock,
    admission: Arc<CallAdmission>,
    call_counters: CallCounters,
}

impl Authority {
    /// Builds a client. `base_url` is the authority's address without `/api/v1`. Fails if a setting cannot be used.
    pub fn new(
        base_url: &Url,
        settings: &ClientSettings,
        clock: SharedClock,
    ) -> Result<Self, AuthorityBuildError> {
        let timeout = settings.timeout;
        let headers = [
            ("x-api-key", secret_header(&settings.api_key, "API key")?),
            (
                "x-api-secret",
                secret_header(&settings.api_secret, "API secret")?,
            ),
        ];
        let inner = Arc::new(ClientInner {
            base_url: base_url_text(base_url)?,
            http: http_client(settings)?,
            api_key: settings.api_key.clone(),
            headers,
            timeout,
            is_paused: settings.is_paused,
            admission: CallAdmission::new(settings.max_concurrent_calls, timeout, clock.clone()),
            clock,
            call_counters: CallCounters::default(),
        });
        Ok(Self {
            inner,
            account: CallerAccount::Service,
        })
    }

    #[must_use]
    pub fn for_account(&self, account: CallerAccount) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            account,
        }
    }

    /// True if this client makes no calls.
    pub fn is_paused(&self) -> bool {
        self.inner.is_paused
    }

    /// Returns the state of every breaker, in the order of [`Operation::ALL`].
    pub fn breakers(&self) -> Vec<BreakerView> {
        self.inner.admission.breaker_views()
    }

    /// Counts the calls to an operation within the last 30 s: those of all accounts, and those of this client's
    /// account. If this document failed before, counts only the answers that came later than its first failure.
    pub fn recent_calls(&self, operation: Operation, irn: &str) -> RecentCalls {
        let origin = CallOrigin::new(self.account, Some(irn));
        self.inner
            .admission
            .breakers
            .recent_calls(operation, &origin)
    }

    /// Returns how long the breaker of an operation would hold back a call about this document; `None` if it would
    /// admit the call now.
    pub fn breaker_wait(&self, operation: Operation, irn: &str) -> Option<Duration> {
        let origin = CallOrigin::new(self.account, Some(irn));
        self.inner
            .admission
            .breakers
            .time_to_wait(operation, &origin)
    }

    /// Stops the calls of an operation by this process, until `reset_breaker`.
    pub fn trip_breaker(&self, operation: Operation) {
        self.inner.admission.trip_breaker(operation);
    }

    /// Closes the breaker of an operation in this process.
    pub fn reset_breaker(&self, operation: Operation) {
        self.inner.admission.reset_breaker(operation);
    }

    /// Closes the breaker of an operation in this process, because the outage for which it opened is over. Does nothing
    /// if a call has failed after `failed_at`, or if an operator tripped the breaker.
    pub fn end_outage(&self, operation: Operation, failed_at: Option<Timestamp>) {
        self.inner.admission.end_outage(operation, failed_at);
    }

    /// Returns the limit of every operation, in the order of [`Operation::ALL`].
    pub fn call_limits(&self) -> Vec<LimitView> {
        self.inner.admission.call_limits()
    }

    /// Returns the number of calls and their total duration for each operation and outcome.
    pub fn call_stats(&self) -> Vec<CallStats> {
        self.inner.call_counters.snapshot()
    }

    /// Returns the number of failed calls since the start of the process, by cause.
    pub fn failure_causes(&self) -> [(CauseKind, u64); CauseKind::ALL.len()] {
        self.inner.call_counters.causes()
    }

    /// Returns the durations of the calls that were made, by operation and outcome.
    pub fn call_durations(&self) -> Histograms<CallLabels> {
        self.inner.call_counters.durations.clone()
    }

    /// Decrypts a download with this client's API key. Fails if the document has another IRN than `irn`.
    pub fn decrypt(&self, irn: &str, document: &EncryptedDocument) -> Result<Value, CryptoError> {
        let document = document.decrypt(&self.inner.api_key)?;
        let named = document
            .get("irn")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if named.trim().eq_ignore_ascii_case(irn) {
            return Ok(document);
        }
        tracing::warn!(irn, "downloaded document has another IRN; refusing it");
        Err(CryptoError::OtherDocument)
    }

    /// Returns true if `GET /api` answers `{ "healthy": true }` within 5 s. A request to call less often shows that the
    /// authority is alive, too. No limit or breaker applies to the request. A paused client asks nobody and returns
    /// false.
    pub async fn is_alive(&self) -> bool {
        !self.inner.is_paused
            && self
                .check_health()
                .await
                .is_ok_and(|answer| answer.is_healthy || answer.is_throttled)
    }

    /// Asks `GET /api` once, for at most 5 s, even if the client is paused. No limit or breaker applies to the request.
    pub async fn check_health(&self) -> Result<HealthAnswer, Cause> {
        let wait = self.inner.timeout.min(LIVENESS_CHECK_TIMEOUT);
        let request = self
            .inner
            .http
            .get(format!("{}/api", self.inner.base_url))
            .timeout(wait);
        let response = exchange(
            request.header(ACCEPT, "application/json"),
            wait,
            &self.inner.clock,
        )
        .await?;
        let body = strict_json::from_untrusted::<Value>(&response.body).unwrap_or_default();
        Ok(HealthAnswer {
            is_healthy: response.status == 200 && body.get("healthy") == Some(&Value::Bool(true)),
            is_throttled: response.status == 429,
            clock_time: response.date,
        })
    }

    /// Makes one call and parses its answer with `read`. If `read` returns `None`, the answer counts as malformed.
    pub(crate) async fn send<T>(
        &self,
        request: AuthorityRequest<'_>,
        read: impl FnOnce(AuthorityAnswer) -> Option<T>,
    ) -> Result<T, AuthorityFailure> {
        let operation = request.operation;
        if self.inner.is_paused {
            self.inner
                .call_counters
                .count_outcome(operation, CallOutcome::Paused, Duration::ZERO);
            return Err(AuthorityFailure::Paused);
        }
        let origin = CallOrigin::new(self.account, request.irn);
        let permit = match self.inner.admission.acquire(operation, origin).await {
            Ok(permit) => permit,
            Err(failure) => {
                let outcome = CallOutcome::from_result::<()>(&Err(failure.clone()));
                self.inner
                    .call_counters
                    .count_outcome(operation, outcome, Duration::ZERO);
                self.check_liveness_if_doubtful(operation).await;
                return Err(failure);
            }
        };
        let started = Instant::now();
        let span = CallSpan::begin(operation);
        let irn = request.irn.unwrap_or_default();
        let response = exchange(
            self.http_request(&request, span.context()),
            self.inner.timeout,
            &self.inner.clock,
        )
        .await;
        let status = response.as_ref().ok().map(|response| response.status);
        let result = read_response(operation, response, read);
        let outcome = CallOutcome::from_result(&result);
        let duration = started.elapsed();
        permit.settle(&result, duration);
        self.inner
            .call_counters
            .record_call(operation, outcome, duration);
        let cause = result.as_ref().err().and_then(AuthorityFailure::cause);
        if let Some(cause) = cause {
            self.inner.call_counters.count_cause(cause.kind());
        }
        span.end(status, outcome, cause);
        tracing::debug!(
            operation = operation.name(),
            irn,
            status,
            outcome = outcome.name(),
            duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            "called the authority"
        );
        if result.is_err() {
            self.check_liveness_if_doubtful(operation).await;
        }
        result
    }

    /// Makes a liveness check if many calls fail, perhaps only because of a few documents or accounts. The check
    /// concerns none of them, so it shows whether the authority itself fails.
    async fn check_liveness_if_doubtful(&self, operation: Operation) {
        if self.inner.admission.should_check_liveness(operation) {
            let is_alive = self.is_alive().await;
            self.inner.admission.on_liveness(operation, is_alive);
        }
    }

    fn http_request(
        &self,
        request: &AuthorityRequest<'_>,
        trace: Option<TraceContext>,
    ) -> RequestBuilder {
        let url = format!("{}{}", self.inner.base_url, request.path);
        let mut builder = self
            .inner
            .http
            .request(request.method.clone(), url)
            .header(ACCEPT, "application/json");
        if let Some(trace) = trace {
            builder = builder.header(TRACEPARENT, trace.to_string());
        }
        if request.with_keys {
            for (name, value) in &self.inner.headers {
                builder = builder.header(*name, value);
            }
        }
        match request.body {
            Some(body) => builder.json(body),
            None => builder,
        }
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Authority")
            .field("root", &self.inner.base_url)
            .finish_non_exhaustive()
    }
}

fn read_response<T>(
    operation: Operation,
    response: Result<RawResponse, Cause>,
    read: impl FnOnce(AuthorityAnswer) -> Option<T>,
) -> Result<T, AuthorityFailure> {
    let response = response.map_err(|cause| classify::failure_for(operation, cause))?;
    let answer = classify::classify_response(operation, &response)?;
    read(answer).ok_or_else(|| {
        classify::failure_for(
            operation,
            Cause::Malformed {
                status: response.status,
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE;
    use timing::clock::{MockClock, SystemClock};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::admission::open_breaker::{BreakerState, HeldCallers};
    use crate::operation::ResourceList;
    use crate::testing::{Behaviour, PUBLIC_PART, Server, authority, encrypt, http, settings};

    /// A taxpayer that has a payer of its own.
    fn taxpayer(id: i64) -> CallerAccount {
        CallerAccount::Taxpayer { id, payer: id }
    }

    #[tokio::test]
    async fn a_paused_client_makes_no_call() {
        let server = Server::json(200, r#"{"healthy":true}"#).await;
        let settings = ClientSettings {
            is_paused: true,
            ..settings(30, 64)
        };
        let base_url = format!("http://{}", server.address).parse().unwrap();
        let authority = Authority::new(&base_url, &settings, Arc::new(SystemClock)).unwrap();
        assert!(!authority.is_alive().await);
        let calls = [
            authority.sign(&Value::Null).await.unwrap_err(),
            authority.confirm("I").await.unwrap_err(),
        ];
        assert_eq!(calls, [AuthorityFailure::Paused, AuthorityFailure::Paused]);
        assert!(server.received_requests().is_empty());
        assert!(authority.check_health().await.unwrap().is_healthy);
    }

    #[tokio::test]
    async fn a_health_check_gives_the_time_of_the_authority() {
        let date = "date: Wed, 21 Oct 2015 07:28:00 GMT\r\n";
        let body = r#"{"healthy":false}"#;
        let server = Server::start(Behaviour::Bytes(http(503, date, body))).await;
        let expected = HealthAnswer {
            is_healthy: false,
            is_throttled: false,
            clock_time: Some("2015-10-21T07:28:00Z".parse().unwrap()),
        };
        assert_eq!(server.authority().check_health().await, Ok(expected));
        let closed = authority(&closed_url(), Arc::new(SystemClock));
        let unreachable = closed.check_health().await.unwrap_err();
        assert_eq!(unreachable.kind(), CauseKind::Unreachable);
    }

    fn closed_url() -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    }

    fn build(
        base_url: &str,
        secret: &str,
        extra_ca_file: Option<&Path>,
    ) -> Result<Authority, AuthorityBuildError> {
        let settings = ClientSettings {
            api_key: secret.into(),
            api_secret: secret.into(),
            extra_ca_file: extra_ca_file.map(Path::to_owned),
            ..settings(1, 64)
        };
        Authority::new(&base_url.parse().unwrap(), &settings, Arc::new(SystemClock))
    }

    #[tokio::test]
    async fn an_effect_that_was_never_sent_is_retryable() {
        for base_url in [closed_url(), "http://nowhere.invalid".to_owned()] {
            let failure = authority(&base_url, Arc::new(SystemClock))
                .sign(&Value::Null)
                .await
                .unwrap_err();
            assert!(
                matches!(
                    failure,
                    AuthorityFailure::Retryable {
                        reason: Cause::Unreachable { .. }
                    }
                ),
                "{failure:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_tls_failure_is_told_from_a_connection_that_was_closed() {
        for (answer, sentence) in [
            (
                "HTTP/1.1 400 Bad Request\r\n\r\n",
                "no trusted TLS connection to the authority could be made",
            ),
            (
                "",
                "the authority could not be reached: no connection could be made",
            ),
        ] {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let authority = authority(
                &format!("https://{}", listener.local_addr().unwrap()),
                Arc::new(SystemClock),
            );
            let no_tls = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut hello = [0; 4_096];
                assert!(stream.read(&mut hello).await.unwrap() > 0);
                stream.write_all(answer.as_bytes()).await.unwrap();
            };
            let ((), result) = tokio::join!(no_tls, authority.sign(&Value::Null));
            let failure = result.unwrap_err();
            assert_eq!(failure.to_string(), sentence);
            assert!(matches!(failure, AuthorityFailure::Retryable { .. }));
        }
    }

    #[tokio::test]
    async fn every_call_carries_the_keys_and_asks_for_json() {
        let server = Server::json(200, r#"{"data":{"ok":true}}"#).await;
        server.authority().transmit("I").await.unwrap();
        let request = server.received_requests().remove(0);
        for line in [
            "x-api-key: 0a1b2c3d-0000-4000-8000-000000000000",
            "x-api-secret: the-secret",
            "accept: application/json",
        ] {
            assert!(request.contains(line), "{line} in {request}");
        }
    }

    #[tokio::test]
    async fn a_base_url_may_have_a_path() {
        let server = Server::json(200, r#"{"data":{"ok":true}}"#).await;
        let base_url = format!("http://{}/gateway/", server.address);
        authority(&base_url, Arc::new(SystemClock))
            .transmit("I")
            .await
            .unwrap();
        assert!(
            server.received_requests()[0]
                .starts_with("POST /gateway/api/v1/invoice/transmit/I HTTP")
        );
    }

    #[tokio::test]
    async fn a_refusal_carries_the_words_of_the_authority_that_name_a_field() {
        let body = r#"{"code":400,"data":null,"message":"error has occurred","error":{"id":"e-1","handler":"invoice_actions",
            "details":"invoicerequest.invoice.issuedate must be a date","public_message":"the invoice is unsound"}}"#;
        let server = Server::json(400, body).await;
        let failure = server.authority().validate(&Value::Null).await.unwrap_err();
        let AuthorityFailure::Refused { status, message } = failure else {
            panic!("{failure}")
        };
        assert_eq!(
            (status, message.as_str()),
            (400, "invoicerequest.invoice.issuedate must be a date")
        );
    }

    #[tokio::test]
    async fn throttling_reports_how_long_to_wait() {
        let server = Server::start(Behaviour::Bytes(http(429, "retry-after: 7\r\n", ""))).await;
        let failure = server.authority().sign(&Value::Null).await.unwrap_err();
        assert_eq!(
            failure,
            AuthorityFailure::Throttled {
                retry_after: Some(Duration::from_secs(7))
            }
        );
    }

    #[tokio::test]
    async fn redirects_are_not_followed() {
        let target = Server::json(200, r#"{"data":[]}"#).await;
        let headers = format!("location: http://{}/\r\n", target.address);
        let server = Server::start(Behaviour::Bytes(http(307, &headers, ""))).await;
        let failure = server
            .authority()
            .fetch_resource_list(ResourceList::States)
            .await
            .unwrap_err();
        assert_eq!(
            failure,
            AuthorityFailure::Retryable {
                reason: Cause::Redirected { status: 307 }
            }
        );
        assert!(target.received_requests().is_empty());
    }

    #[tokio::test]
    async fn an_endless_answer_is_cut_off() {
        let server = Server::start(Behaviour::Endless).await;
        let failure = server
            .authority()
            .fetch_resource_list(ResourceList::States)
            .await
            .unwrap_err();
        assert_eq!(
            failure,
            AuthorityFailure::Retryable {
                reason: Cause::Malformed { status: 200 }
            }
        );
    }

    #[tokio::test]
    async fn an_open_breaker_sends_nothing_until_a_probe_is_due() {
        let clock = Arc::new(MockClock::at(
            Timestamp::from_second(1_800_000_000).unwrap(),
        ));
        let server = Server::json(503, "").await;
        let authority = server.authority_at(clock.clone());
        for _ in 0..20 {
            authority.confirm("I").await.unwrap_err();
        }
        let failure = authority.confirm("J").await.unwrap_err();
        assert_eq!(
            failure,
            AuthorityFailure::BreakerOpen {
                retry_after: Duration::from_secs(5)
            }
        );
        assert!(!failure.counts_as_attempt());
        assert_eq!(
            server.received_requests().len(),
            21,
            "including the liveness check"
        );
        clock.advance(Duration::from_secs(5));
        assert!(matches!(
            authority.confirm("J").await,
            Err(AuthorityFailure::Retryable { .. })
        ));
        assert_eq!(server.received_requests().len(), 22);
        let view = authority
            .breakers()
            .swap_remove(Operation::Confirm as usize);
        assert_eq!((view.state, view.openings), (BreakerState::Open, 1));
        let counted: Vec<_> = authority
            .call_stats()
            .into_iter()
            .filter(|stats| stats.calls > 0)
            .collect();
        let counted: Vec<_> = counted
            .iter()
            .map(|stats| (stats.outcome, stats.calls))
            .collect();
        assert_eq!(
            counted,
            [(CallOutcome::Retryable, 21), (CallOutcome::BreakerOpen, 1)]
        );
    }

    #[tokio::test]
    async fn one_failing_document_opens_no_breaker_for_others_while_the_authority_answers() {
        let healthy = ("GET /api ", http(200, "", r#"{"healthy":true}"#));
        let server = Server::start(Behaviour::ByPath(vec![
            healthy,
            ("/confirm/", http(500, "", "")),
        ]))
        .await;
        let authority = server.authority();
        let attacker = authority.for_account(taxpayer(1));
        for _ in 0..40 {
            assert!(matches!(
                attacker.confirm("I").await,
                Err(AuthorityFailure::Retryable { .. })
            ));
        }
        for number in 0..20 {
            attacker.confirm(&format!("I{number}")).await.unwrap_err();
        }
        assert!(matches!(
            attacker.confirm("I").await,
            Err(AuthorityFailure::BreakerOpen { .. })
        ));
        let view = authority
            .breakers()
            .swap_remove(Operation::Confirm as usize);
        assert_eq!(view.held, HeldCallers::Accounts(vec![taxpayer(1)]));
        assert!(!view.is_outage);
        let other = authority.for_account(taxpayer(2));
        assert!(
            matches!(
                other.confirm("J").await,
                Err(AuthorityFailure::Retryable { .. })
            ),
            "its calls are made"
        );
        let asked = server
            .received_requests()
            .iter()
            .filter(|request| request.starts_with("GET /api "))
            .count();
        assert_eq!(asked, 1, "once every 5 s at most");
    }

    #[tokio::test]
    async fn a_call_of_a_task_with_a_trace_says_which() {
        let server = Server::json(200, r#"{"data":{}}"#).await;
        let authority = server.authority();
        let trace = TraceContext::default();
        let _ = trace.scope(authority.confirm("I")).await;
        let _ = authority.confirm("I").await;
        let traced = server.received_requests().into_iter().map(|request| {
            let line = request
                .lines()
                .find_map(|line| line.strip_prefix("traceparent: ").map(str::to_owned));
            let called = line.and_then(|header| header.parse::<TraceContext>().ok());
            called.map(TraceContext::id)
        });
        assert_eq!(traced.collect::<Vec<_>>(), [Some(trace.id()), None]);
    }

    #[tokio::test]
    async fn an_authority_is_alive_when_it_says_so() {
        for (status, body, alive) in [
            (200, r#"{"healthy":true}"#, true),
            (200, r#"{"healthy":false}"#, false),
            (200, "<html>", false),
            (500, r#"{"healthy":true}"#, false),
            (429, "", true),
            (429, r#"{"healthy":false}"#, true),
        ] {
            let server = Server::json(status, body).await;
            assert_eq!(
                server.authority().is_alive().await,
                alive,
                "{status} {body}"
            );
            let request = server.received_requests().remove(0);
            assert!(request.starts_with("GET /api HTTP") && !request.contains("x-api-"));
        }
        assert!(
            !authority(&closed_url(), Arc::new(SystemClock))
                .is_alive()
                .await
        );
    }

    #[test]
    fn a_download_with_the_document_of_another_irn_is_refused() {
        let authority = authority(&closed_url(), Arc::new(SystemClock));
        for (plain, is_ours) in [
            (r#"{"irn":"INV1-94AD90FB-20260115"}"#, true),
            (r#"{"irn":"inv1-94ad90fb-20260115"}"#, true),
            (r#"{"irn":"INV2-94AD90FB-20260115"}"#, false),
            (r#"{"irn":null}"#, false),
            ("{}", false),
        ] {
            let (iv_hex, bytes) = encrypt(plain.as_bytes());
            let data = URL_SAFE.encode(bytes);
            let document = EncryptedDocument {
                iv_hex,
                public_part: PUBLIC_PART.to_owned(),
                data,
            };
            let read = authority.decrypt("INV1-94AD90FB-20260115", &document);
            assert_eq!(
                read.err(),
                (!is_ours).then_some(CryptoError::OtherDocument),
                "{plain}"
            );
        }
    }

    #[test]
    fn settings_that_cannot_be_used_are_named() {
        for base_url in [
            "ftp://host",
            "http://host?a=b",
            "http://host#a",
            "mailto:a@b",
        ] {
            assert!(
                matches!(
                    build(base_url, "k", None),
                    Err(AuthorityBuildError::BaseUrl)
                ),
                "{base_url}"
            );
        }
        assert!(matches!(
            build("http://host", "a\nb", None),
            Err(AuthorityBuildError::Header("API key"))
        ));
        for pem in [
            &b""[..],
            b"no pem",
            b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----",
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), pem).unwrap();
            let built = build("http://host", "k", Some(file.path()));
            assert!(
                matches!(built, Err(AuthorityBuildError::ExtraCa(path)) if path == file.path())
            );
        }
        assert!(build("https://host", "k", None).is_ok());
    }

    #[test]
    fn debug_shows_no_secret() {
        let authority = build("https://host", "hidden", None).unwrap();
        assert_eq!(
            format!("{authority:?}"),
            "Authority { root: \"https://host\", .. }"
        );
    }
}
