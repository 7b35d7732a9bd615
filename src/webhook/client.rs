//! The HTTP client of everything that goes to addresses strangers chose.
//!
//! The URL is checked before each request, because literal addresses bypass the resolver; names are checked by the
//! resolver at each connection. Redirects, the system's proxy and decompression are off; time and size are bounded.

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
        Ok(Self { policy, secure, plain, max_body })
    }

    pub fn policy(&self) -> &AddressPolicy {
        &self.policy
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

fn unanswered(outcome: Outcome) -> Attempt {
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
