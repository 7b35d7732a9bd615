//! The HTTP client for URLs that strangers have chosen.
//!
//! The client checks the URL before each request. At each connection the resolver checks the addresses of a host name,
//! and the connector checks an address that the URL contains. There are no redirects, no proxies and no decompression.
//! Time and size are limited.

use std::sync::Arc;
use std::time::{Duration, Instant};

use address_policy::{AddressPolicy, AllowedNetwork};
use dashmap::DashMap;
use http::header::{
    ACCEPT, CONNECTION, CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
    USER_AGENT,
};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use timing::retry_after::RetryAfter;
use tokio::time::timeout_at;
use url::Url;

use crate::attempt::{AttemptOutcome, AttemptResult, TransportFault};
use crate::auth::{Credentials, challenge};
use crate::http::connect_policy::{ConnectPolicy, ConnectScope};
use crate::http::connector::{ConnectionLimits, GuardedConnector, tls_config};
use crate::http::keep_alive::KeepAliveHosts;
use crate::http::logged_headers::{RequestSecrets, log_request};
use crate::http::read_budget::ReadBudget;
use crate::http::request_context::RequestContext;
use crate::http::resolver::{Lookup, SystemLookup};

/// The timeout for making a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time for which an idle connection is kept open. It is short, because an open connection costs a file descriptor
/// on both sides.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of idle connections to one endpoint that are kept.
const IDLE_PER_HOST_MAX: usize = 64;
/// The number of clients that are cached, one for each list of allowed networks. Few such lists are expected.
const NETWORK_CLIENTS_MAX: usize = 1_000;
/// The largest number of receivers to which idle connections are kept.
const KEEP_ALIVE_HOSTS_MAX: usize = 256;
/// The number of bytes that a connection may take beside the body of a response: a TLS handshake, interim responses,
/// the head, and the sizes of chunks.
const HEAD_BYTES_MAX: usize = 64 * 1_024;
/// The response header with which a receiver asks not to get this message again.
const ABORT_HEADER: (&str, &str) = ("webhook-delivery", "abort-message");

/// The client cannot be built, because the system has no usable certificates.
#[derive(Debug, thiserror::Error)]
#[error("the webhook client cannot be built")]
pub struct ClientBuildError(#[source] rustls::Error);

type HttpClient = Client<GuardedConnector, Full<Bytes>>;
pub(crate) type Request = http::Request<Full<Bytes>>;

/// One request. The body is JSON, unless a header names another content type.
#[derive(Debug, Clone, Copy)]
pub struct PostRequest<'a> {
    pub url: &'a str,
    pub headers: &'a [(&'static str, String)],
    pub body: &'a [u8],
    /// The number of bytes of the response body to keep in the result.
    pub keep_bytes: usize,
}

impl PostRequest<'_> {
    /// The number of response bytes that the log of attempts keeps.
    pub const KEEP_BYTES_FOR_LOG: usize = 1_024;
    /// The number of response bytes in the result of a webhook test.
    pub const KEEP_BYTES_FOR_TEST: usize = 16 * 1_024;
}

/// A client that never connects to an address that its policy refuses. All clones share their connections.
#[derive(Debug, Clone)]
pub struct GuardedClient {
    policy: Arc<AddressPolicy>,
    https: HttpClient,
    /// Used for plain http. Connects only to addresses of the allow-list.
    plain_http: HttpClient,
    /// Resolves host names; the policy then filters the addresses.
    lookup: Arc<dyn Lookup>,
    /// One client for each list of allowed networks. These clients share no connections, because an open connection is
    /// not checked again.
    by_networks: Arc<DashMap<Vec<AllowedNetwork>, Self>>,
    keep_alive: Arc<KeepAliveHosts>,
    body_bytes_max: usize,
    timeout: Duration,
    user_agent: &'static str,
}

impl GuardedClient {
    /// Builds a client. `timeout` limits a whole attempt, `body_bytes_max` the bytes that are read from a response
    /// body.
    pub fn new(
        policy: AddressPolicy,
        timeout: Duration,
        body_bytes_max: usize,
        user_agent: &'static str,
    ) -> Result<Self, ClientBuildError> {
        let system: Arc<dyn Lookup> = Arc::new(SystemLookup);
        Self::with_lookup(&system, policy, timeout, body_bytes_max, user_agent)
    }

    /// Builds a client that resolves host names with `lookup`.
    pub(crate) fn with_lookup(
        lookup: &Arc<dyn Lookup>,
        policy: AddressPolicy,
        timeout: Duration,
        body_bytes_max: usize,
        user_agent: &'static str,
    ) -> Result<Self, ClientBuildError> {
        let policy = Arc::new(policy);
        let tls = Arc::new(tls_config().map_err(ClientBuildError)?);
        let limits = ConnectionLimits {
            timeout: CONNECT_TIMEOUT.min(timeout),
            read_bytes_max: HEAD_BYTES_MAX + body_bytes_max,
        };
        let build = |scope| {
            let addresses = Arc::clone(&policy);
            let policy = ConnectPolicy { addresses, scope };
            let connector =
                GuardedConnector::new(policy, Arc::clone(lookup), Arc::clone(&tls), limits);
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_TIMEOUT)
                .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
                .build(connector)
        };
        let https = build(ConnectScope::Public);
        let plain_http = build(ConnectScope::AllowList);
        let lookup = Arc::clone(lookup);
        let by_networks = Arc::default();
        let keep_alive = Arc::new(KeepAliveHosts::new(KEEP_ALIVE_HOSTS_MAX, IDLE_TIMEOUT));
        Ok(Self {
            policy,
            https,
            plain_http,
            lookup,
            by_networks,
            keep_alive,
            body_bytes_max,
            timeout,
            user_agent,
        })
    }

    pub fn policy(&self) -> &AddressPolicy {
        &self.policy
    }

    /// Returns the timeout of a whole attempt.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Returns this client with the time that is left of an attempt of several requests, which began at `started`.
    /// The client itself then ends a late request, so the result keeps what was read until then, such as a status
    /// without its body.
    #[must_use]
    pub fn for_rest_of_attempt(&self, started: Instant) -> Self {
        Self {
            timeout: self.timeout.saturating_sub(started.elapsed()),
            ..self.clone()
        }
    }

    /// Builds a client with the same policy and limits that shares no connections with this one.
    pub(crate) fn with_own_connections(&self) -> Result<Self, ClientBuildError> {
        Self::with_lookup(
            &self.lookup,
            (*self.policy).clone(),
            self.timeout,
            self.body_bytes_max,
            self.user_agent,
        )
    }

    /// Returns a client that may also connect to these networks.
    pub fn for_networks(&self, networks: &[AllowedNetwork]) -> Result<Self, ClientBuildError> {
        if networks.is_empty() {
            return Ok(self.clone());
        }
        if let Some(known) = self.by_networks.get(networks) {
            return Ok(known.clone());
        }
        let isolated = Self::with_lookup(
            &self.lookup,
            self.policy.with_networks(networks),
            self.timeout,
            self.body_bytes_max,
            self.user_agent,
        )?;
        let client = Self {
            keep_alive: Arc::clone(&self.keep_alive),
            ..isolated
        };
        if self.by_networks.len() >= NETWORK_CLIENTS_MAX {
            self.by_networks.clear();
        }
        self.by_networks.insert(networks.to_vec(), client.clone());
        Ok(client)
    }

    /// Makes one attempt without credentials. A failure is an outcome of the result.
    pub async fn post(&self, post: PostRequest<'_>) -> AttemptResult {
        self.post_with_credentials(post, &Credentials::none()).await
    }

    pub async fn post_with_credentials(
        &self,
        post: PostRequest<'_>,
        credentials: &Credentials,
    ) -> AttemptResult {
        self.exchange(post, credentials).await.0
    }

    /// Makes one attempt. Also returns the NTLM challenge of the response, if there is one.
    pub(crate) async fn exchange(
        &self,
        post: PostRequest<'_>,
        credentials: &Credentials,
    ) -> (AttemptResult, Option<String>) {
        let started = Instant::now();
        let (mut attempt, challenge) = match self.policy.check_url(post.url) {
            Ok(url) => self.send(url, post, credentials).await,
            Err(fault) => (
                AttemptResult::without_response(AttemptOutcome::Forbidden(fault)),
                None,
            ),
        };
        attempt.duration = started.elapsed();
        tracing::debug!(
            outcome = attempt.outcome.name(),
            status = attempt.status,
            duration_ms = u64::try_from(attempt.duration.as_millis()).unwrap_or(u64::MAX),
            "called a webhook"
        );
        (attempt, challenge)
    }

    async fn send(
        &self,
        url: Url,
        post: PostRequest<'_>,
        credentials: &Credentials,
    ) -> (AttemptResult, Option<String>) {
        let client = if url.scheme() == "https" {
            &self.https
        } else {
            &self.plain_http
        };
        let context = RequestContext::start(&url);
        let deadline = tokio::time::Instant::now() + self.timeout;
        let Ok(request) = self.build_request(&url, post, credentials) else {
            let unsendable = AttemptOutcome::Unreachable(TransportFault::Reset);
            return (AttemptResult::without_response(unsendable), None);
        };
        let request_headers = log_request(&request);
        let secrets = RequestSecrets::find(&request);
        let answer = timeout_at(deadline, context.scope(client.request(request))).await;
        let (attempt, challenge) = match answer {
            Ok(Ok(response)) => {
                context.clock().record_answer();
                let challenge = challenge(response.headers());
                let (answer, body) = read_answer(response, &secrets);
                let body = read_body(body, self.body_bytes_max, deadline).await;
                let response_head = body_head(&body, post.keep_bytes, &secrets);
                let attempt = AttemptResult {
                    response_head,
                    ..answer
                };
                (attempt, challenge)
            }
            Ok(Err(error)) => {
                let outcome = AttemptOutcome::from_error(&error);
                (AttemptResult::without_response(outcome), None)
            }
            Err(_) => (
                AttemptResult::without_response(AttemptOutcome::TimedOut),
                None,
            ),
        };
        let attempt = AttemptResult {
            phases: context.clock().phases(),
            request_headers,
            ..attempt
        };
        (attempt, challenge)
    }

    fn build_request(
        &self,
        url: &Url,
        post: PostRequest<'_>,
        credentials: &Credentials,
    ) -> Result<Request, http::Error> {
        let body = Full::from(post.body.to_vec());
        let mut request = http::Request::post(url.as_str()).body(body)?;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_str(self.user_agent)?);
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.extend(credentials.headers());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in post.headers {
            headers.insert(HeaderName::try_from(*name)?, HeaderValue::from_str(value)?);
        }
        if !self.keep_alive.may_keep_alive(url.origin(), Instant::now()) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(request)
    }
}

/// Reads the head of a response. Returns the result without the body, and the body.
fn read_answer(
    response: http::Response<Incoming>,
    secrets: &RequestSecrets,
) -> (AttemptResult, Incoming) {
    // The body gets a budget of its own. Its limit leaves enough bytes for the head of the next response on this
    // connection.
    if let Some(budget) = response.extensions().get::<ReadBudget>() {
        budget.renew();
    }
    let status = response.status().as_u16();
    let header = |name| {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let retry_after = header(RETRY_AFTER).and_then(|text| RetryAfter::parse(text, header(DATE)));
    let outcome = AttemptOutcome::from_response(status, has_abort_header(response.headers()));
    let attempt = AttemptResult {
        status: Some(status),
        retry_after,
        response_headers: secrets.log_response(response.headers()),
        ..AttemptResult::without_response(outcome)
    };
    (attempt, response.into_body())
}

/// Returns true if the response asks us not to send this message again.
fn has_abort_header(headers: &HeaderMap) -> bool {
    let (name, expected) = ABORT_HEADER;
    headers.get_all(name).iter().any(|value| {
        value
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(expected.as_bytes())
    })
}

/// Reads up to `max` bytes of the body. If the body breaks off or times out, returns the bytes read so far.
async fn read_body(mut body: Incoming, max: usize, deadline: tokio::time::Instant) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < max {
        let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await else {
            break;
        };
        if let Some(chunk) = frame.data_ref() {
            read.extend_from_slice(chunk);
        }
    }
    read.truncate(max);
    read
}

/// Returns the start of the body as text of at most `keep_bytes` bytes. Invalid bytes and NUL become U+FFFD. Secrets
/// are hidden before the text is cut, because the start of a secret would not be found.
fn body_head(body: &[u8], keep_bytes: usize, secrets: &RequestSecrets) -> String {
    if keep_bytes == 0 {
        return String::new();
    }
    let text = String::from_utf8_lossy(body).replace('\0', "\u{fffd}");
    let mut text = secrets.hide_in_start(&text, keep_bytes);
    text.truncate(text.floor_char_boundary(keep_bytes));
    text
}

#[cfg(test)]
mod tests {
    use address_policy::UrlFault;

    use super::*;
    use crate::http::phases::PhaseTimes;
    use crate::testing::{AfterResponse, TestReceiver};

    const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];
    const USER_AGENT: &str = "caller/1.0";
    const OPEN_ENDED: &str = "HTTP/1.1 200 OK\r\n\r\n";

    fn within(timeout: Duration, allowed: &[&str]) -> GuardedClient {
        let allowed = allowed
            .iter()
            .map(|network| network.parse().unwrap())
            .collect();
        GuardedClient::new(AddressPolicy::new(allowed), timeout, 64 * 1_024, USER_AGENT).unwrap()
    }

    /// Returns a client whose timeout is longer than any delay on a busy test machine.
    fn client(allowed: &[&str]) -> GuardedClient {
        within(Duration::from_secs(30), allowed)
    }

    async fn post(allowed: &[&str], url: &str) -> AttemptResult {
        client(allowed)
            .post(PostRequest {
                url,
                headers: &[],
                body: b"{}",
                keep_bytes: PostRequest::KEEP_BYTES_FOR_LOG,
            })
            .await
    }

    fn empty_post(url: &Url) -> Request {
        http::Request::post(url.as_str())
            .body(Full::default())
            .unwrap()
    }

    async fn post_hastily(url: &str) -> AttemptResult {
        let client = within(Duration::from_secs(1), &LOOPBACK);
        client
            .post(PostRequest {
                url,
                headers: &[],
                body: b"{}",
                keep_bytes: PostRequest::KEEP_BYTES_FOR_LOG,
            })
            .await
    }

    #[tokio::test]
    async fn a_message_is_delivered_with_its_headers() {
        let endpoint = TestReceiver::with_answer(204, "", "").await;
        let headers = [("webhook-id", "msg_1".to_owned())];
        let url = endpoint.url("/hook?a=b");
        let post = PostRequest {
            url: &url,
            headers: &headers,
            body: b"{\"n\":1}",
            keep_bytes: PostRequest::KEEP_BYTES_FOR_LOG,
        };
        let attempt = client(&LOOPBACK).post(post).await;
        assert_eq!(
            (attempt.outcome, attempt.status),
            (AttemptOutcome::Delivered, Some(204))
        );
        let request = endpoint.connections().remove(0);
        for part in [
            "POST /hook?a=b HTTP/1.1",
            "webhook-id: msg_1",
            "user-agent: caller/1.0",
            "content-type: application/json",
            "{\"n\":1}",
        ] {
            assert!(request.contains(part), "{part} in {request}");
        }
        assert!(!request.contains("accept-encoding"));
        let head = request.split("\r\n\r\n").next().unwrap();
        let mut sent: Vec<_> = head.lines().skip(1).map(str::to_owned).collect();
        let logged = attempt.request_headers.iter();
        let mut logged: Vec<_> = logged
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        sent.sort();
        logged.sort();
        assert_eq!(logged, sent, "the log shows what was sent");
    }

    #[tokio::test]
    async fn answers_become_outcomes() {
        for (status, expected) in [
            (200, AttemptOutcome::Delivered),
            (202, AttemptOutcome::Delivered),
            (400, AttemptOutcome::Rejected(400)),
            (410, AttemptOutcome::Gone),
            (429, AttemptOutcome::Rejected(429)),
            (500, AttemptOutcome::Rejected(500)),
        ] {
            let endpoint =
                TestReceiver::with_answer(status, "retry-after: 9\r\n", "thanks\0").await;
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!((attempt.outcome, attempt.status), (expected, Some(status)));
            assert_eq!(
                attempt.retry_after,
                Some(RetryAfter::Wait(Duration::from_secs(9)))
            );
            let retry_after = ("retry-after".to_owned(), "9".to_owned());
            assert!(attempt.response_headers.contains(&retry_after));
            assert_eq!(attempt.response_head, "thanks\u{fffd}");
        }
    }

    #[tokio::test]
    async fn a_receiver_may_end_a_delivery_with_any_answer_but_a_2xx() {
        let abort = "Webhook-Delivery:  Abort-Message \r\n";
        for (status, headers, expected) in [
            (500, abort, AttemptOutcome::Aborted(500)),
            (422, abort, AttemptOutcome::Aborted(422)),
            (302, abort, AttemptOutcome::Aborted(302)),
            (410, abort, AttemptOutcome::Aborted(410)),
            (200, abort, AttemptOutcome::Delivered),
            (204, abort, AttemptOutcome::Delivered),
            (
                500,
                "webhook-delivery: abort\r\n",
                AttemptOutcome::Rejected(500),
            ),
            (
                500,
                "webhook-delivery: later\r\nwebhook-delivery: abort-message\r\n",
                AttemptOutcome::Aborted(500),
            ),
            (
                500,
                "x-webhook-delivery: abort-message\r\n",
                AttemptOutcome::Rejected(500),
            ),
        ] {
            let endpoint = TestReceiver::with_answer(status, headers, "").await;
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!(
                (attempt.outcome, attempt.status),
                (expected, Some(status)),
                "{headers}"
            );
            assert_eq!(attempt.is_gone(), status == 410, "{headers}");
        }
        assert_eq!(AttemptOutcome::Aborted(500).name(), "aborted");
    }

    #[tokio::test]
    async fn an_attempt_says_how_long_each_of_its_phases_took() {
        let endpoint = TestReceiver::start(
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
            AfterResponse::Again,
        )
        .await;
        let client = client(&LOOPBACK);
        let by_name = format!("http://localhost:{}/", endpoint.address.port());
        let mut phases = Vec::new();
        for url in [endpoint.url("/"), endpoint.url("/"), by_name] {
            let post = PostRequest {
                url: &url,
                headers: &[],
                body: b"{}",
                keep_bytes: 0,
            };
            let attempt = client.post(post).await;
            let PhaseTimes {
                dns,
                connect,
                wait,
                read,
            } = attempt.phases;
            let sum: Duration = [dns, connect, wait, read].into_iter().flatten().sum();
            assert!(sum <= attempt.duration, "{attempt:?}");
            phases.push([dns, connect, wait, read].map(|phase| phase.is_some()));
        }
        let direct = [false, true, true, true];
        let reused = [false, false, true, true];
        assert_eq!(phases, [direct, reused, [true; 4]]);
        assert_eq!(endpoint.calls(), 2);
        assert_eq!(
            post(&LOOPBACK, "https://10.0.0.1/").await.phases,
            PhaseTimes::default()
        );
    }

    #[tokio::test]
    async fn a_name_is_called_where_the_allow_list_holds_its_address() {
        let endpoint = TestReceiver::with_answer(200, "", "").await;
        let attempt = post(
            &LOOPBACK,
            &format!("http://localhost:{}/", endpoint.address.port()),
        )
        .await;
        assert_eq!(attempt.outcome, AttemptOutcome::Delivered);
    }

    #[tokio::test]
    async fn the_address_of_a_host_is_checked_at_the_connection() {
        let canary = TestReceiver::with_answer(200, "", "").await;
        // The inner clients do not check the URL, so only the check at the connection can refuse.
        let guarded = client(&["10.0.0.0/8"]);
        let port = canary.address.port();
        for host in [
            "localhost",
            "127.0.0.1",
            "0.0.0.0",
            "2130706433",
            "[::ffff:127.0.0.1]",
        ] {
            for (client, scheme) in [(&guarded.https, "https"), (&guarded.plain_http, "http")] {
                let url: Url = format!("{scheme}://{host}:{port}/").parse().unwrap();
                let call = client.request(empty_post(&url));
                let error = RequestContext::start(&url).scope(call).await.unwrap_err();
                assert_eq!(
                    AttemptOutcome::from_error(&error),
                    AttemptOutcome::Forbidden(UrlFault::AddressRefused),
                    "{url}"
                );
            }
        }
        assert!(canary.connections().is_empty());
    }

    #[tokio::test]
    async fn a_request_without_a_context_makes_no_connection() {
        let canary = TestReceiver::with_answer(200, "", "").await;
        let url = canary.url("/").parse().unwrap();
        let call = client(&LOOPBACK).plain_http.request(empty_post(&url));
        let error = call.await.unwrap_err();
        assert_eq!(
            AttemptOutcome::from_error(&error),
            AttemptOutcome::Forbidden(UrlFault::AddressRefused)
        );
        assert!(canary.connections().is_empty());
    }

    #[tokio::test]
    async fn the_client_for_https_makes_no_plain_request() {
        let canary = TestReceiver::with_answer(200, "", "").await;
        let url = canary.url("/").parse().unwrap();
        let call = client(&LOOPBACK).https.request(empty_post(&url));
        assert!(RequestContext::start(&url).scope(call).await.is_err());
        assert!(canary.connections().is_empty());
    }

    #[tokio::test]
    async fn a_failure_before_the_response_is_a_transport_fault() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let attempt = post(&LOOPBACK, &format!("http://{closed}/")).await;
        assert_eq!(
            attempt.outcome,
            AttemptOutcome::Unreachable(TransportFault::Connect)
        );
        assert_eq!((attempt.status, attempt.response_head.as_str()), (None, ""));
        let attempt = post(&[], "https://nowhere.invalid/").await;
        assert_eq!(
            attempt.outcome,
            AttemptOutcome::Unreachable(TransportFault::Dns)
        );
        assert!(
            attempt.phases.dns.is_some() && attempt.phases.connect.is_none(),
            "{attempt:?}"
        );
        for answer in ["", "no HTTP at all\r\n\r\n", "HTTP/1.1 "] {
            let endpoint = TestReceiver::start(answer, AfterResponse::Close).await;
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!(
                attempt.outcome,
                AttemptOutcome::Unreachable(TransportFault::Reset),
                "{answer}"
            );
        }
        for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", ""] {
            let endpoint = TestReceiver::start(answer, AfterResponse::Close).await;
            let attempt = post(&LOOPBACK, &endpoint.url("/").replace("http:", "https:")).await;
            assert_eq!(
                attempt.outcome,
                AttemptOutcome::Unreachable(TransportFault::Tls),
                "{answer}"
            );
            assert!(
                attempt.phases.connect.is_some() && attempt.phases.wait.is_none(),
                "{attempt:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_silent_endpoint_ends_at_the_timeout() {
        let silent = TestReceiver::start("", AfterResponse::Stall).await;
        let attempt = post_hastily(&silent.url("/")).await;
        assert_eq!(attempt.outcome, AttemptOutcome::TimedOut);
        assert!(attempt.duration < Duration::from_secs(20));
        assert!(
            attempt.phases.wait > Some(Duration::from_millis(500)),
            "{attempt:?}"
        );
        assert_eq!(attempt.phases.read, None);
    }

    #[tokio::test]
    async fn a_dripping_response_ends_at_the_timeout() {
        let slow_head =
            TestReceiver::start("HTTP/1.1 200 OK\r\n", AfterResponse::Drip("x: y\r\n")).await;
        assert_eq!(
            post_hastily(&slow_head.url("/")).await.outcome,
            AttemptOutcome::TimedOut
        );
        let slow_body = TestReceiver::start(OPEN_ENDED, AfterResponse::Drip("x")).await;
        let attempt = post_hastily(&slow_body.url("/")).await;
        assert_eq!(attempt.outcome, AttemptOutcome::Delivered);
        assert!(
            attempt.phases.read > Some(Duration::from_millis(500)),
            "{attempt:?}"
        );
        assert!(attempt.duration < Duration::from_secs(20));
    }

    #[tokio::test]
    async fn a_head_without_end_is_no_response() {
        let line = TestReceiver::start("HTTP/1.1 200 OK\r\nx-long: ", AfterResponse::Flood).await;
        let lines = TestReceiver::start(
            &format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101)),
            AfterResponse::Close,
        )
        .await;
        for (endpoint, fault) in [
            (line, TransportFault::Excess),
            (lines, TransportFault::Reset),
        ] {
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            let expected = AttemptOutcome::Unreachable(fault);
            assert_eq!(attempt.outcome, expected, "{attempt:?}");
        }
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(99));
        let endpoint = TestReceiver::start(&many, AfterResponse::Close).await;
        assert_eq!(
            post(&LOOPBACK, &endpoint.url("/")).await.outcome,
            AttemptOutcome::Delivered
        );
    }

    #[tokio::test]
    async fn a_storm_of_interim_responses_ends_by_its_bytes() {
        for storm in [
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n",
            "HTTP/1.1 199 Other\r\nx-long: some more text in the head\r\n\r\n",
        ] {
            let endpoint = TestReceiver::start("", AfterResponse::Repeat(storm)).await;
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!(
                attempt.outcome,
                AttemptOutcome::Unreachable(TransportFault::Excess),
                "{storm}"
            );
            assert!(attempt.duration < Duration::from_secs(10), "{attempt:?}");
            // The buffers of the two sockets hold a few megabytes that are sent, but not read.
            assert!(endpoint.flood_bytes() < 32 * 1_024 * 1_024, "{storm}");
        }
        let few = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
        let answer = format!("{few}HTTP/1.1 204 No Content\r\n\r\n");
        let endpoint = TestReceiver::start(&answer, AfterResponse::Close).await;
        assert_eq!(
            post(&LOOPBACK, &endpoint.url("/")).await.outcome,
            AttemptOutcome::Delivered
        );
    }

    #[tokio::test]
    async fn each_answer_on_a_connection_may_be_as_long_as_the_first() {
        let body = "x".repeat(60 * 1_024);
        let length = body.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        let endpoint = TestReceiver::start(&answer, AfterResponse::Again).await;
        let client = client(&LOOPBACK);
        for _ in 0..6 {
            let url = endpoint.url("/");
            let post = PostRequest {
                url: &url,
                headers: &[],
                body: b"{}",
                keep_bytes: usize::MAX,
            };
            let attempt = client.post(post).await;
            assert_eq!(
                (attempt.outcome, attempt.response_head.len()),
                (AttemptOutcome::Delivered, length)
            );
        }
        assert_eq!(endpoint.calls(), 1);
    }

    #[tokio::test]
    async fn a_compressed_response_is_not_inflated() {
        // The text begins with the first byte of gzip, so a client that decompresses the body would change it.
        let compressed = "\u{1f}_not-inflated";
        for coding in ["gzip", "br", "zstd", "deflate"] {
            let endpoint = TestReceiver::with_answer(
                200,
                &format!("content-encoding: {coding}\r\n"),
                compressed,
            )
            .await;
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!(
                (attempt.outcome, attempt.response_head.as_str()),
                (AttemptOutcome::Delivered, compressed)
            );
        }
    }

    /// Runs this test again in a child process whose environment variables name proxies.
    #[tokio::test]
    async fn the_proxies_of_the_environment_are_not_used() {
        const TARGET: &str = "WEBHOOK_CLIENT_TEST_TARGET";
        if let Ok(url) = std::env::var(TARGET) {
            assert_eq!(
                post(&LOOPBACK, &url).await.outcome,
                AttemptOutcome::Delivered
            );
            // A default client uses the proxies, which proves that the environment is set up correctly.
            reqwest::Client::new()
                .post("http://proxied.invalid/")
                .send()
                .await
                .unwrap();
            return;
        }
        let endpoint = TestReceiver::with_answer(200, "", "").await;
        let canary = TestReceiver::with_answer(200, "", "").await;
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args([
            "--exact",
            "http::client::tests::the_proxies_of_the_environment_are_not_used",
        ]);
        for name in [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
        ] {
            child.env(name, canary.url(""));
        }
        child
            .env_remove("NO_PROXY")
            .env_remove("no_proxy")
            .env_remove("REQUEST_METHOD");
        child.env(TARGET, endpoint.url("/"));
        let output = tokio::task::spawn_blocking(move || child.output().unwrap())
            .await
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
        assert_eq!(endpoint.calls(), 1);
        let proxied = canary.connections();
        assert_eq!(proxied.len(), 1);
        assert!(
            proxied[0].starts_with("POST http://proxied.invalid/"),
            "{}",
            proxied[0]
        );
    }

    #[tokio::test]
    async fn a_body_that_does_not_end_does_not_change_the_outcome() {
        let slow = TestReceiver::start(&format!("{OPEN_ENDED}begun"), AfterResponse::Stall).await;
        let attempt = post_hastily(&slow.url("/")).await;
        assert_eq!(
            (attempt.outcome, attempt.response_head.as_str()),
            (AttemptOutcome::Delivered, "begun")
        );
        assert!(attempt.duration < Duration::from_secs(20));
    }

    #[tokio::test]
    async fn an_endless_body_is_cut_off() {
        let flood = TestReceiver::start(OPEN_ENDED, AfterResponse::Flood).await;
        let url = flood.url("/");
        let post = PostRequest {
            url: &url,
            headers: &[],
            body: b"{}",
            keep_bytes: PostRequest::KEEP_BYTES_FOR_TEST,
        };
        let slow = GuardedClient {
            body_bytes_max: 8 * 1_024,
            ..client(&LOOPBACK)
        };
        let attempt = slow.post(post).await;
        assert_eq!(
            (attempt.outcome, attempt.response_head.len()),
            (AttemptOutcome::Delivered, 8 * 1_024)
        );
        for (keep_bytes, kept) in [
            (
                PostRequest::KEEP_BYTES_FOR_TEST,
                PostRequest::KEEP_BYTES_FOR_TEST,
            ),
            (usize::MAX, 64 * 1_024),
        ] {
            let attempt = client(&LOOPBACK)
                .post(PostRequest { keep_bytes, ..post })
                .await;
            assert_eq!(
                (attempt.outcome, attempt.response_head.len()),
                (AttemptOutcome::Delivered, kept)
            );
        }
    }

    #[test]
    fn a_kept_head_is_text_within_its_limit() {
        let head =
            |body: &[u8], keep_bytes| body_head(body, keep_bytes, &RequestSecrets::default());
        assert_eq!(head("äää".as_bytes(), 3), "ä");
        assert_eq!(head(b"\xff\xff\xff\xff", 5), "\u{fffd}");
        assert_eq!(head(b"short", 1_024), "short");
        assert_eq!(head(b"", 1_024), "");
        assert_eq!(head(b"short", 0), "");
    }

    #[tokio::test]
    async fn a_kept_body_repeats_no_secret_of_the_request() {
        const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let credentials = Credentials::bearer("mF_9.B5f-4.1JqM").unwrap();
        let headers = [("webhook-signature", SIGNATURE.to_owned())];
        let echo = format!("webhook-signature: {SIGNATURE}\nauthorization: Bearer mF_9.B5f-4.1JqM");
        let whole = "webhook-signature: (hidden)\nauthorization: (hidden)";
        for (status, keep_bytes, kept) in [
            (200, 1_024, whole),
            (500, 1_024, whole),
            // The limit lies within the first secret.
            (500, 24, "webhook-signature: (hidd"),
        ] {
            let endpoint = TestReceiver::with_answer(status, "", &echo).await;
            let url = endpoint.url("/");
            let post = PostRequest {
                url: &url,
                headers: &headers,
                body: b"{}",
                keep_bytes,
            };
            let attempt = client(&LOOPBACK)
                .post_with_credentials(post, &credentials)
                .await;
            assert_eq!(
                (attempt.status, attempt.response_head.as_str()),
                (Some(status), kept)
            );
        }
    }
}
