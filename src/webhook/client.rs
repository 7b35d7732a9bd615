//! The HTTP client of everything that goes to addresses strangers chose.
//!
//! The URL is checked before each request, and at each connection what it leads to: the addresses of a name by the
//! resolver, an address in the URL by the connector. Redirects, the system's proxy and decompression are off; time
//! and size are bounded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dashmap::DashMap;
use reqwest::header::{CONNECTION, CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Response};
use url::Url;

use super::address::AddressPolicy;
use super::attempt::{Attempt, Outcome};
use super::auth::{Credentials, challenge};
use super::gate::{Gate, Reach};
use super::kept_hosts::KeptHosts;
use super::passage::{GateLayer, Passage};
use super::resolver::{GuardedResolver, Lookup, SystemLookup};
use super::retry_after::retry_after;
use crate::domain::integration::network::AllowedNetwork;

/// The longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long an unused connection is kept: each is a file to the system, here and at the receiver.
const IDLE_MAX: Duration = Duration::from_secs(5);
/// Unused connections kept per endpoint: as many as are used at a time, for those that are called again and again.
const IDLE_PER_HOST_MAX: usize = 64;
/// Lists of networks whose clients are kept: operators set few different ones.
const WIDER_MAX: usize = 1_000;
/// Receivers to which connections are kept at a time.
const KEPT_HOSTS_MAX: usize = 256;
/// The header by which a receiver ends a delivery, and what it says.
const ORDER: (&str, &str) = ("webhook-delivery", "abort-message");

/// No client could be made: the system has no usable certificates.
#[derive(Debug, thiserror::Error)]
#[error("the webhook client cannot be built")]
pub struct BuildError(#[source] reqwest::Error);

/// One request: a JSON body to a URL, with headers.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    pub url: &'a str,
    pub headers: &'a [(&'static str, String)],
    pub body: &'a [u8],
    /// How much of the answer's body is kept, in bytes.
    pub keep: usize,
}

impl Post<'_> {
    /// What the log of attempts keeps of an answer.
    pub const KEPT_FOR_LOG: usize = 1_024;
    /// What the webhook test shows of an answer.
    pub const KEPT_FOR_TEST: usize = 16 * 1_024;
}

/// A client that cannot be made to call what its policy refuses. Clones share connections.
#[derive(Debug, Clone)]
pub struct GuardedClient {
    policy: Arc<AddressPolicy>,
    /// For https.
    secure: Client,
    /// For plain http, which reaches the allow-list alone.
    plain: Client,
    /// How names are looked up, before any address is refused.
    lookup: Arc<dyn Lookup>,
    /// Those that reach networks of a taxpayer as well. They share no connections: an open one is not checked again.
    wider: Arc<DashMap<Vec<AllowedNetwork>, Self>>,
    kept: Arc<KeptHosts>,
    max_body: usize,
    timeout: Duration,
}

impl GuardedClient {
    /// `timeout` is for a whole attempt; `max_body` bounds the bytes read of an answer.
    pub fn new(policy: AddressPolicy, timeout: Duration, max_body: usize) -> Result<Self, BuildError> {
        let system: Arc<dyn Lookup> = Arc::new(SystemLookup);
        Self::asking(&system, policy, timeout, max_body)
    }

    /// One whose names are looked up in a way of its own.
    pub(super) fn asking(
        lookup: &Arc<dyn Lookup>,
        policy: AddressPolicy,
        timeout: Duration,
        max_body: usize,
    ) -> Result<Self, BuildError> {
        let policy = Arc::new(policy);
        let build = |reach| {
            let gate = Gate { policy: Arc::clone(&policy), reach };
            let resolver = GuardedResolver { gate: gate.clone(), lookup: Arc::clone(lookup) };
            Client::builder()
                .user_agent(concat!("einvoice/", env!("CARGO_PKG_VERSION")))
                .timeout(timeout)
                .connect_timeout(CONNECT_MAX.min(timeout))
                .pool_idle_timeout(IDLE_MAX)
                .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .no_proxy()
                .no_gzip()
                .no_brotli()
                .no_zstd()
                .no_deflate()
                .https_only(reach == Reach::Public)
                .dns_resolver(Arc::new(resolver))
                .connector_layer(GateLayer(gate))
                .build()
                .map_err(BuildError)
        };
        let (secure, plain) = (build(Reach::Public)?, build(Reach::Allowed)?);
        let (lookup, wider) = (Arc::clone(lookup), Arc::default());
        let kept = Arc::new(KeptHosts::new(KEPT_HOSTS_MAX, IDLE_MAX));
        Ok(Self { policy, secure, plain, lookup, wider, kept, max_body, timeout })
    }

    pub fn policy(&self) -> &AddressPolicy {
        &self.policy
    }

    /// How long a whole attempt may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// A client of the same limits with connections of its own, to one receiver: it keeps them.
    pub(super) fn apart(&self) -> Result<Self, BuildError> {
        Self::asking(&self.lookup, (*self.policy).clone(), self.timeout, self.max_body)
    }

    /// The client for a taxpayer with networks of its own; this one where it has none.
    pub fn reaching(&self, networks: &[AllowedNetwork]) -> Result<Self, BuildError> {
        if networks.is_empty() {
            return Ok(self.clone());
        }
        if let Some(known) = self.wider.get(networks) {
            return Ok(known.clone());
        }
        let apart = Self::asking(&self.lookup, self.policy.with(networks), self.timeout, self.max_body)?;
        let client = Self { kept: Arc::clone(&self.kept), ..apart };
        if self.wider.len() >= WIDER_MAX {
            self.wider.clear();
        }
        self.wider.insert(networks.to_vec(), client.clone());
        Ok(client)
    }

    /// Makes one attempt. It never fails as such: whatever happens is an outcome.
    pub async fn post(&self, post: Post<'_>) -> Attempt {
        self.post_as(post, &Credentials::none()).await
    }

    /// Makes one attempt that says who makes it.
    pub async fn post_as(&self, post: Post<'_>, credentials: &Credentials) -> Attempt {
        self.exchange(post, credentials).await.0
    }

    /// One attempt, and the challenge of the answer where it has one.
    pub(super) async fn exchange(
        &self,
        post: Post<'_>,
        credentials: &Credentials,
    ) -> (Attempt, Option<String>) {
        let started = Instant::now();
        let (mut attempt, challenge) = match self.policy.check_url(post.url) {
            Ok(url) => self.send(url, post, credentials).await,
            Err(fault) => (Attempt::unanswered(Outcome::Forbidden(fault)), None),
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

    async fn send(&self, url: Url, post: Post<'_>, credentials: &Credentials) -> (Attempt, Option<String>) {
        let client = if url.scheme() == "https" { &self.secure } else { &self.plain };
        let (passage, url_origin) = (Passage::to(&url), url.origin());
        let mut request = client.post(url).headers(credentials.headers()).body(post.body.to_vec());
        if !post.headers.iter().any(|(name, _)| *name == CONTENT_TYPE.as_str()) {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in post.headers {
            request = request.header(*name, value);
        }
        if !self.kept.keeps(url_origin, Instant::now()) {
            request = request.header(CONNECTION, "close");
        }
        let (mut attempt, challenge) = match passage.carry(request.send()).await {
            Ok(response) => {
                passage.clock().answered();
                let challenge = challenge(response.headers());
                (self.answered(response, post.keep).await, challenge)
            }
            Err(error) => (Attempt::unanswered(Outcome::of_error(&error)), None),
        };
        attempt.phases = passage.clock().phases();
        (attempt, challenge)
    }

    async fn answered(&self, response: Response, keep: usize) -> Attempt {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let outcome = Outcome::of_answer(status, aborts(response.headers()));
        let body = read(response, self.max_body).await;
        let response_head = head(&body, keep);
        Attempt { status: Some(status), retry_after, response_head, ..Attempt::unanswered(outcome) }
    }
}

/// Whether the receiver wants this message no more.
fn aborts(headers: &HeaderMap) -> bool {
    let (name, order) = ORDER;
    headers
        .get_all(name)
        .iter()
        .any(|value| value.as_bytes().trim_ascii().eq_ignore_ascii_case(order.as_bytes()))
}

/// At most `max` bytes of the body. One that breaks off or does not end in time is as long as it came.
async fn read(mut response: Response, max: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < max {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        body.extend_from_slice(&chunk);
    }
    body.truncate(max);
    body
}

/// At most `keep` bytes of the body as text, never half a character, without the NUL that databases refuse.
fn head(body: &[u8], keep: usize) -> String {
    let mut text = String::from_utf8_lossy(&body[..body.len().min(keep)]).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(keep));
    text
}

#[cfg(test)]
mod tests {
    use super::super::attempt::Fault;
    use super::super::destination::UrlFault;
    use super::super::phases::Phases;
    use super::super::retry_after::RetryAfter;
    use super::super::testing::{Endpoint, Then};
    use super::*;

    const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1/128"];
    const OPEN_ENDED: &str = "HTTP/1.1 200 OK\r\n\r\n";

    fn within(timeout: Duration, allowed: &[&str]) -> GuardedClient {
        let allowed = allowed.iter().map(|network| network.parse().unwrap()).collect();
        GuardedClient::new(AddressPolicy::new(allowed), timeout, 64 * 1_024).unwrap()
    }

    /// A client that waits longer than a busy machine takes.
    fn client(allowed: &[&str]) -> GuardedClient {
        within(Duration::from_secs(30), allowed)
    }

    async fn post(allowed: &[&str], url: &str) -> Attempt {
        client(allowed).post(Post { url, headers: &[], body: b"{}", keep: Post::KEPT_FOR_LOG }).await
    }

    async fn post_hastily(url: &str) -> Attempt {
        let client = within(Duration::from_secs(1), &LOOPBACK);
        client.post(Post { url, headers: &[], body: b"{}", keep: Post::KEPT_FOR_LOG }).await
    }

    #[tokio::test]
    async fn a_message_is_delivered_with_its_headers() {
        let endpoint = Endpoint::answering(204, "", "").await;
        let headers = [("webhook-id", "msg_1".to_owned())];
        let url = endpoint.url("/hook?a=b");
        let post = Post { url: &url, headers: &headers, body: b"{\"n\":1}", keep: Post::KEPT_FOR_LOG };
        let attempt = client(&LOOPBACK).post(post).await;
        assert_eq!((attempt.outcome, attempt.status), (Outcome::Delivered, Some(204)));
        let request = endpoint.connections().remove(0);
        for part in
            ["POST /hook?a=b HTTP/1.1", "webhook-id: msg_1", "content-type: application/json", "{\"n\":1}"]
        {
            assert!(request.contains(part), "{part} in {request}");
        }
        assert!(!request.contains("accept-encoding"));
    }

    #[tokio::test]
    async fn answers_become_outcomes() {
        for (status, expected) in [
            (200, Outcome::Delivered),
            (202, Outcome::Delivered),
            (400, Outcome::Rejected(400)),
            (410, Outcome::Gone),
            (429, Outcome::Rejected(429)),
            (500, Outcome::Rejected(500)),
        ] {
            let endpoint = Endpoint::answering(status, "retry-after: 9\r\n", "thanks\0").await;
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!((attempt.outcome, attempt.status), (expected, Some(status)));
            assert_eq!(attempt.retry_after, Some(RetryAfter::Wait(Duration::from_secs(9))));
            assert_eq!(attempt.response_head, "thanks\u{fffd}");
        }
    }

    #[tokio::test]
    async fn a_receiver_may_end_a_delivery_with_any_answer_but_a_2xx() {
        let abort = "Webhook-Delivery:  Abort-Message \r\n";
        for (status, headers, expected) in [
            (500, abort, Outcome::Aborted(500)),
            (422, abort, Outcome::Aborted(422)),
            (302, abort, Outcome::Aborted(302)),
            (410, abort, Outcome::Aborted(410)),
            (200, abort, Outcome::Delivered),
            (204, abort, Outcome::Delivered),
            (500, "webhook-delivery: abort\r\n", Outcome::Rejected(500)),
            (500, "webhook-delivery: later\r\nwebhook-delivery: abort-message\r\n", Outcome::Aborted(500)),
            (500, "x-webhook-delivery: abort-message\r\n", Outcome::Rejected(500)),
        ] {
            let endpoint = Endpoint::answering(status, headers, "").await;
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!((attempt.outcome, attempt.status), (expected, Some(status)), "{headers}");
            assert_eq!(attempt.is_gone(), status == 410, "{headers}");
        }
        assert_eq!(Outcome::Aborted(500).name(), "aborted");
    }

    #[tokio::test]
    async fn an_attempt_says_how_long_each_of_its_phases_took() {
        let endpoint = Endpoint::start("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", Then::Again).await;
        let client = client(&LOOPBACK);
        let by_name = format!("http://localhost:{}/", endpoint.address.port());
        let mut phases = Vec::new();
        for url in [endpoint.url("/"), endpoint.url("/"), by_name] {
            let post = Post { url: &url, headers: &[], body: b"{}", keep: 0 };
            let attempt = client.post(post).await;
            let Phases { dns, connect, wait, read } = attempt.phases;
            let sum: Duration = [dns, connect, wait, read].into_iter().flatten().sum();
            assert!(sum <= attempt.duration, "{attempt:?}");
            phases.push([dns, connect, wait, read].map(|phase| phase.is_some()));
        }
        let (direct, reused) = ([false, true, true, true], [false, false, true, true]);
        assert_eq!(phases, [direct, reused, [true; 4]]);
        assert_eq!(endpoint.calls(), 2);
        assert_eq!(post(&LOOPBACK, "https://10.0.0.1/").await.phases, Phases::default());
    }

    #[tokio::test]
    async fn a_name_is_called_where_the_allow_list_holds_its_address() {
        let endpoint = Endpoint::answering(200, "", "").await;
        let attempt = post(&LOOPBACK, &format!("http://localhost:{}/", endpoint.address.port())).await;
        assert_eq!(attempt.outcome, Outcome::Delivered);
    }

    #[tokio::test]
    async fn what_a_host_leads_to_is_checked_at_the_connection() {
        let canary = Endpoint::answering(200, "", "").await;
        // Past the check of the URL, straight to each of the clients.
        let guarded = client(&["10.0.0.0/8"]);
        let port = canary.address.port();
        for host in ["localhost", "127.0.0.1", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]"] {
            for (client, scheme) in [(&guarded.secure, "https"), (&guarded.plain, "http")] {
                let url: Url = format!("{scheme}://{host}:{port}/").parse().unwrap();
                let call = client.post(url.clone()).send();
                let error = Passage::to(&url).carry(call).await.unwrap_err();
                assert_eq!(Outcome::of_error(&error), Outcome::Forbidden(UrlFault::AddressRefused), "{url}");
            }
        }
        assert!(canary.connections().is_empty());
    }

    #[tokio::test]
    async fn a_request_of_which_nothing_is_known_makes_no_connection() {
        let canary = Endpoint::answering(200, "", "").await;
        let error = client(&LOOPBACK).plain.post(canary.url("/")).send().await.unwrap_err();
        assert_eq!(Outcome::of_error(&error), Outcome::Forbidden(UrlFault::AddressRefused));
        assert!(canary.connections().is_empty());
    }

    #[tokio::test]
    async fn the_client_for_https_makes_no_plain_request() {
        let canary = Endpoint::answering(200, "", "").await;
        let url = canary.url("/").parse().unwrap();
        let call = client(&LOOPBACK).secure.post(canary.url("/")).send();
        assert!(Passage::to(&url).carry(call).await.is_err());
        assert!(canary.connections().is_empty());
    }

    #[tokio::test]
    async fn the_way_to_an_answer_ends_in_a_fault() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let attempt = post(&LOOPBACK, &format!("http://{closed}/")).await;
        assert_eq!(attempt.outcome, Outcome::Unreachable(Fault::Connect));
        assert_eq!((attempt.status, attempt.response_head.as_str()), (None, ""));
        let attempt = post(&[], "https://nowhere.invalid/").await;
        assert_eq!(attempt.outcome, Outcome::Unreachable(Fault::Dns));
        assert!(attempt.phases.dns.is_some() && attempt.phases.connect.is_none(), "{attempt:?}");
        for answer in ["", "no HTTP at all\r\n\r\n", "HTTP/1.1 "] {
            let endpoint = Endpoint::start(answer, Then::Close).await;
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!(attempt.outcome, Outcome::Unreachable(Fault::Reset), "{answer}");
        }
        for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", ""] {
            let endpoint = Endpoint::start(answer, Then::Close).await;
            let attempt = post(&LOOPBACK, &endpoint.url("/").replace("http:", "https:")).await;
            assert_eq!(attempt.outcome, Outcome::Unreachable(Fault::Tls), "{answer}");
            assert!(attempt.phases.connect.is_some() && attempt.phases.wait.is_none(), "{attempt:?}");
        }
    }

    #[tokio::test]
    async fn a_silent_endpoint_costs_no_more_than_the_timeout() {
        let silent = Endpoint::start("", Then::Stall).await;
        let attempt = post_hastily(&silent.url("/")).await;
        assert_eq!(attempt.outcome, Outcome::TimedOut);
        assert!(attempt.duration < Duration::from_secs(20));
        assert!(attempt.phases.wait > Some(Duration::from_millis(500)), "{attempt:?}");
        assert_eq!(attempt.phases.read, None);
    }

    #[tokio::test]
    async fn an_answer_in_drops_costs_no_more_than_the_timeout() {
        let slow_head = Endpoint::start("HTTP/1.1 200 OK\r\n", Then::Drip("x: y\r\n")).await;
        assert_eq!(post_hastily(&slow_head.url("/")).await.outcome, Outcome::TimedOut);
        let slow_body = Endpoint::start(OPEN_ENDED, Then::Drip("x")).await;
        let attempt = post_hastily(&slow_body.url("/")).await;
        assert_eq!(attempt.outcome, Outcome::Delivered);
        assert!(attempt.phases.read > Some(Duration::from_millis(500)), "{attempt:?}");
        assert!(attempt.duration < Duration::from_secs(20));
    }

    #[tokio::test]
    async fn a_head_without_end_is_no_answer() {
        let line = Endpoint::start("HTTP/1.1 200 OK\r\nx-long: ", Then::Flood).await;
        let lines =
            Endpoint::start(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(101)), Then::Close).await;
        let early = Endpoint::start(&"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(1_000), Then::Close).await;
        for endpoint in [line, lines, early] {
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!(attempt.outcome, Outcome::Unreachable(Fault::Reset), "{attempt:?}");
        }
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(99));
        let endpoint = Endpoint::start(&many, Then::Close).await;
        assert_eq!(post(&LOOPBACK, &endpoint.url("/")).await.outcome, Outcome::Delivered);
    }

    #[tokio::test]
    async fn a_compressed_answer_is_left_as_it_is() {
        // The first bytes of a gzip of a text; whoever inflated them would keep other bytes, or none.
        let compressed = "\u{1f}_not-inflated";
        for coding in ["gzip", "br", "zstd", "deflate"] {
            let endpoint =
                Endpoint::answering(200, &format!("content-encoding: {coding}\r\n"), compressed).await;
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!((attempt.outcome, attempt.response_head.as_str()), (Outcome::Delivered, compressed));
        }
    }

    /// Runs itself once more, in a process that is told of proxies.
    #[tokio::test]
    async fn the_proxies_of_the_environment_are_not_used() {
        const TARGET: &str = "EINVOICE_TEST_TARGET";
        if let Ok(url) = std::env::var(TARGET) {
            assert_eq!(post(&LOOPBACK, &url).await.outcome, Outcome::Delivered);
            // Another client would use them.
            Client::new().post("http://proxied.invalid/").send().await.unwrap();
            return;
        }
        let (endpoint, canary) =
            (Endpoint::answering(200, "", "").await, Endpoint::answering(200, "", "").await);
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "webhook::client::tests::the_proxies_of_the_environment_are_not_used"]);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            child.env(name, canary.url(""));
        }
        child.env_remove("NO_PROXY").env_remove("no_proxy").env_remove("REQUEST_METHOD");
        child.env(TARGET, endpoint.url("/"));
        let output = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(endpoint.calls(), 1);
        let proxied = canary.connections();
        assert_eq!(proxied.len(), 1);
        assert!(proxied[0].starts_with("POST http://proxied.invalid/"), "{}", proxied[0]);
    }

    #[tokio::test]
    async fn a_body_that_does_not_end_takes_nothing_from_its_status() {
        let slow = Endpoint::start(&format!("{OPEN_ENDED}begun"), Then::Stall).await;
        let attempt = post_hastily(&slow.url("/")).await;
        assert_eq!((attempt.outcome, attempt.response_head.as_str()), (Outcome::Delivered, "begun"));
        assert!(attempt.duration < Duration::from_secs(20));
    }

    #[tokio::test]
    async fn an_endless_body_is_cut_off() {
        let flood = Endpoint::start(OPEN_ENDED, Then::Flood).await;
        let url = flood.url("/");
        let post = Post { url: &url, headers: &[], body: b"{}", keep: Post::KEPT_FOR_TEST };
        let slow = GuardedClient { max_body: 8 * 1_024, ..client(&LOOPBACK) };
        let attempt = slow.post(post).await;
        assert_eq!((attempt.outcome, attempt.response_head.len()), (Outcome::Delivered, 8 * 1_024));
        for (keep, kept) in [(Post::KEPT_FOR_TEST, Post::KEPT_FOR_TEST), (usize::MAX, 64 * 1_024)] {
            let attempt = client(&LOOPBACK).post(Post { keep, ..post }).await;
            assert_eq!((attempt.outcome, attempt.response_head.len()), (Outcome::Delivered, kept));
        }
    }

    #[test]
    fn a_kept_head_is_text_within_its_limit() {
        assert_eq!(head("äää".as_bytes(), 3), "ä");
        assert_eq!(head(b"\xff\xff\xff\xff", 5), "\u{fffd}");
        assert_eq!(head(b"short", 1_024), "short");
        assert_eq!(head(b"", 1_024), "");
    }
}
