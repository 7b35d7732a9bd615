//! The HTTP client of everything that goes to addresses strangers chose.
//!
//! The URL is checked before each request, because literal addresses bypass the resolver; names are checked
//! by the resolver at each connection. Redirects, the system's proxy and decompression are off; time and
//! size are bounded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::fmt::rfc2822::DateTimeParser;
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response};
use url::Url;

use super::address::AddressPolicy;
use super::attempt::{Attempt, Outcome};
use super::resolver::{GuardedResolver, Reach};

/// The longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long an unused connection is kept.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Unused connections kept per endpoint.
const IDLE_PER_HOST_MAX: usize = 2;

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
    max_body: usize,
    timeout: Duration,
}

impl GuardedClient {
    /// `timeout` is for a whole attempt; `max_body` bounds the bytes read of an answer.
    pub fn new(policy: AddressPolicy, timeout: Duration, max_body: usize) -> Result<Self, BuildError> {
        let policy = Arc::new(policy);
        let build = |reach| {
            let resolver = GuardedResolver { policy: Arc::clone(&policy), reach };
            Client::builder()
                .user_agent(concat!("einvoice/", env!("CARGO_PKG_VERSION")))
                .timeout(timeout)
                .connect_timeout(CONNECT_MAX.min(timeout))
                .pool_idle_timeout(IDLE_MAX)
                .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .no_proxy()
                .https_only(reach == Reach::Public)
                .dns_resolver(Arc::new(resolver))
                .build()
                .map_err(BuildError)
        };
        let (secure, plain) = (build(Reach::Public)?, build(Reach::Allowed)?);
        Ok(Self { policy, secure, plain, max_body, timeout })
    }

    pub fn policy(&self) -> &AddressPolicy {
        &self.policy
    }

    /// How long an attempt may take in all.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Makes one attempt. It never fails as such: whatever happens is an outcome.
    pub async fn post(&self, post: Post<'_>) -> Attempt {
        let started = Instant::now();
        let mut attempt = match self.policy.check_url(post.url) {
            Ok(url) => self.send(url, post).await,
            Err(fault) => unanswered(Outcome::Forbidden(fault)),
        };
        attempt.duration = started.elapsed();
        tracing::debug!(
            outcome = attempt.outcome.name(),
            status = attempt.status,
            duration_ms = u64::try_from(attempt.duration.as_millis()).unwrap_or(u64::MAX),
            "called a webhook"
        );
        attempt
    }

    async fn send(&self, url: Url, post: Post<'_>) -> Attempt {
        let client = if url.scheme() == "https" { &self.secure } else { &self.plain };
        let mut request = client.post(url).header(CONTENT_TYPE, "application/json").body(post.body.to_vec());
        for (name, value) in post.headers {
            request = request.header(*name, value);
        }
        match request.send().await {
            Ok(response) => self.answered(response, post.keep).await,
            Err(error) => unanswered(Outcome::of_error(&error)),
        }
    }

    async fn answered(&self, response: Response, keep: usize) -> Attempt {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let body = read(response, self.max_body).await;
        let response_head = head(&body, keep);
        let (outcome, status) = (Outcome::of_status(status), Some(status));
        Attempt { outcome, status, duration: Duration::ZERO, retry_after, response_head }
    }
}

/// What an attempt came to that had no answer.
pub(super) fn unanswered(outcome: Outcome) -> Attempt {
    Attempt {
        outcome,
        status: None,
        duration: Duration::ZERO,
        retry_after: None,
        response_head: String::new(),
    }
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

/// Retry-After in seconds, or as a date read against the answer's own Date (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let parser = DateTimeParser::new();
    let then = parser.parse_timestamp(text).ok()?;
    let now = parser.parse_timestamp(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::super::attempt::Fault;
    use super::super::destination::UrlFault;
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
            assert_eq!(attempt.retry_after, Some(Duration::from_secs(9)));
            assert_eq!(attempt.response_head, "thanks\u{fffd}");
        }
    }

    #[tokio::test]
    async fn redirects_are_not_followed() {
        let target = Endpoint::answering(200, "", "").await;
        for status in [301, 302, 303, 307, 308] {
            let headers = format!("location: {}\r\n", target.url("/"));
            let endpoint = Endpoint::answering(status, &headers, "").await;
            assert_eq!(post(&LOOPBACK, &endpoint.url("/")).await.outcome, Outcome::Rejected(status));
        }
        assert!(target.connections().is_empty());
    }

    #[tokio::test]
    async fn no_spelling_of_a_private_address_reaches_it() {
        let canary = Endpoint::answering(200, "", "").await;
        let (port, client) = (canary.address.port(), client(&[]));
        for host in [
            "127.0.0.1",
            "2130706433",
            "0177.0.0.1",
            "0x7f.1",
            "127.1",
            "127.0.0.1.",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "localhost",
            "localhost.",
            "LOCALHOST",
            "a.localhost",
            "user:pass@127.0.0.1",
            "example.com@127.0.0.1",
            "0.0.0.0",
            "[::]",
        ] {
            for scheme in ["http", "https"] {
                let url = format!("{scheme}://{host}:{port}/");
                let attempt = client.post(Post { url: &url, headers: &[], body: b"{}", keep: 0 }).await;
                assert!(matches!(attempt.outcome, Outcome::Forbidden(_)), "{scheme} {host}: {attempt:?}");
            }
        }
        assert!(canary.connections().is_empty());
    }

    #[tokio::test]
    async fn a_name_is_called_where_the_allow_list_holds_its_address() {
        let endpoint = Endpoint::answering(200, "", "").await;
        let attempt = post(&LOOPBACK, &format!("http://localhost:{}/", endpoint.address.port())).await;
        assert_eq!(attempt.outcome, Outcome::Delivered);
    }

    #[tokio::test]
    async fn what_a_name_resolves_to_is_checked_at_the_connection() {
        let canary = Endpoint::answering(200, "", "").await;
        // Past the check of the URL, straight to each of the clients.
        let guarded = client(&["10.0.0.0/8"]);
        let port = canary.address.port();
        for (client, scheme) in [(&guarded.secure, "https"), (&guarded.plain, "http")] {
            let error = client.post(format!("{scheme}://localhost:{port}/")).send().await.unwrap_err();
            assert_eq!(Outcome::of_error(&error), Outcome::Forbidden(UrlFault::AddressRefused), "{scheme}");
        }
        assert!(canary.connections().is_empty());
    }

    #[tokio::test]
    async fn the_client_for_https_makes_no_plain_request() {
        let canary = Endpoint::answering(200, "", "").await;
        assert!(client(&LOOPBACK).secure.post(canary.url("/")).send().await.is_err());
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
        for answer in ["", "no HTTP at all\r\n\r\n", "HTTP/1.1 "] {
            let endpoint = Endpoint::start(answer, Then::Close).await;
            let attempt = post(&LOOPBACK, &endpoint.url("/")).await;
            assert_eq!(attempt.outcome, Outcome::Unreachable(Fault::Reset), "{answer}");
        }
        for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", ""] {
            let endpoint = Endpoint::start(answer, Then::Close).await;
            let attempt = post(&LOOPBACK, &endpoint.url("/").replace("http:", "https:")).await;
            assert_eq!(attempt.outcome, Outcome::Unreachable(Fault::Tls), "{answer}");
        }
    }

    #[tokio::test]
    async fn a_silent_endpoint_costs_no_more_than_the_timeout() {
        let silent = Endpoint::start("", Then::Stall).await;
        let attempt = post_hastily(&silent.url("/")).await;
        assert_eq!(attempt.outcome, Outcome::TimedOut);
        assert!(attempt.duration < Duration::from_secs(20));
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
        let attempt = client(&LOOPBACK).post(post).await;
        assert_eq!((attempt.outcome, attempt.response_head.len()), (Outcome::Delivered, Post::KEPT_FOR_TEST));
    }

    #[test]
    fn a_kept_head_is_text_within_its_limit() {
        assert_eq!(head("äää".as_bytes(), 3), "ä");
        assert_eq!(head(b"\xff\xff\xff\xff", 5), "\u{fffd}");
        assert_eq!(head(b"short", 1_024), "short");
        assert_eq!(head(b"", 1_024), "");
    }
}
