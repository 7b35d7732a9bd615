//! Construction of the client, and the one path every call takes: leave of limit and breaker, exchange,
//! judgement, counters, log line.
//!
//! Redirects and the system's proxy are off. Secrets stand in sensitive headers and nowhere else.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Certificate, Client, RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::account::{Account, Origin};
use super::answer::Answer;
use super::breaker::BreakerView;
use super::call::Call;
use super::classify;
use super::download::EncryptedDocument;
use super::exchange::{Reply, exchange};
use super::failure::{Cause, Failure};
use super::gate::Gate;
use super::keys::CryptoError;
use super::limits::LimitView;
use super::operation::Operation;
use super::tally::{Outcome, Tallies, Tally};
use crate::domain::kernel::clock::SharedClock;

/// The longest wait for a connection; beyond it nothing was sent.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long an unused connection is kept: shorter than gateways keep theirs, so that few calls meet a closed
/// one.
const IDLE_MAX: Duration = Duration::from_secs(30);
/// The longest wait of a liveness check.
const ALIVE_MAX: Duration = Duration::from_secs(5);

/// Where the authority is and who we are to it.
#[derive(Debug)]
pub struct Settings {
    /// The root, without `/api/v1`.
    pub base_url: Url,
    /// `x-api-key`, a UUID. Its first group is part of the key of downloads.
    pub api_key: SecretString,
    /// `x-api-secret`.
    pub api_secret: SecretString,
    /// PEM certificates to trust beside the system's, for deployments that omit their intermediate one.
    pub extra_ca_pem: Option<Vec<u8>>,
    /// The time for one whole call, and the longest wait for leave to make it.
    pub timeout: Duration,
    /// The most calls of one operation at a time; what is found to be borne may be less.
    pub max_concurrent_calls: u32,
}

/// Settings from which no client can be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the authority's base URL must be http or https, with a host, without query and fragment")]
    BaseUrl,
    #[error("the authority's {0} holds characters that no header may hold")]
    Header(&'static str),
    #[error("the authority's extra CA file holds no readable PEM certificate")]
    ExtraCa,
    #[error("the authority's HTTP client cannot be built")]
    Client(#[source] reqwest::Error),
}

/// A client of the authority. Clones share connections, breakers, limits and counters.
#[derive(Clone)]
pub struct Authority {
    shared: Arc<Shared>,
    /// For whom the calls are made.
    account: Account,
}

struct Shared {
    http: Client,
    root: String,
    api_key: SecretString,
    headers: [(&'static str, HeaderValue); 2],
    timeout: Duration,
    clock: SharedClock,
    gate: Arc<Gate>,
    tallies: Tallies,
}

impl Authority {
    /// # Errors
    /// When a setting cannot be used, or the system has no usable certificates.
    pub fn new(settings: Settings, clock: SharedClock) -> Result<Self, BuildError> {
        let headers = [
            ("x-api-key", sensitive(&settings.api_key, "API key")?),
            ("x-api-secret", sensitive(&settings.api_secret, "API secret")?),
        ];
        let shared = Arc::new(Shared {
            root: root(&settings.base_url)?,
            http: http(&settings)?,
            api_key: settings.api_key,
            headers,
            timeout: settings.timeout,
            gate: Gate::new(settings.max_concurrent_calls, settings.timeout, clock.clone()),
            clock,
            tallies: Tallies::default(),
        });
        Ok(Self { shared, account: Account::Service })
    }

    /// The same client, making its calls for an account.
    #[must_use]
    pub fn on_behalf_of(&self, account: Account) -> Self {
        Self { shared: Arc::clone(&self.shared), account }
    }

    /// Every breaker, in the order of [`Operation::ALL`].
    pub fn breakers(&self) -> Vec<BreakerView> {
        self.shared.gate.breaker_views()
    }

    /// The limit of every operation, in the same order.
    pub fn limits(&self) -> Vec<LimitView> {
        self.shared.gate.limit_views()
    }

    /// Calls and their time, per operation and outcome, zeros included.
    pub fn counters(&self) -> Vec<Tally> {
        self.shared.tallies.all()
    }

    /// Decrypts the download of an IRN with this client's own key. A document of another IRN is refused.
    pub fn decrypt(&self, irn: &str, document: &EncryptedDocument) -> Result<Value, CryptoError> {
        let document = document.decrypt(&self.shared.api_key)?;
        let named = document.get("irn").and_then(Value::as_str).unwrap_or_default();
        if named.trim().eq_ignore_ascii_case(irn) {
            return Ok(document);
        }
        tracing::warn!(irn, "the authority's download of an IRN holds the document of another");
        Err(CryptoError::OtherDocument)
    }

    /// Whether the authority answers at all: `GET /api` gives `{ "healthy": true }` within 5 s. No limit,
    /// no breaker, no keys.
    pub async fn alive(&self) -> bool {
        let wait = self.shared.timeout.min(ALIVE_MAX);
        let request = self.shared.http.get(format!("{}/api", self.shared.root)).timeout(wait);
        let Ok(reply) = exchange(request.header(ACCEPT, "application/json"), wait, &self.shared.clock).await
        else {
            return false;
        };
        let body = strict_json::from_untrusted::<Value>(&reply.body).unwrap_or_default();
        reply.status == 200 && body.get("healthy") == Some(&Value::Bool(true))
    }

    /// Makes one call and reads its answer. An answer that `read` cannot make sense of is a garbled one.
    pub(super) async fn send<T>(
        &self,
        call: Call<'_>,
        read: impl FnOnce(Answer) -> Option<T>,
    ) -> Result<T, Failure> {
        let operation = call.operation;
        let origin = Origin::new(self.account, call.irn);
        let leave = match self.shared.gate.enter(operation, origin).await {
            Ok(leave) => leave,
            Err(failure) => {
                let outcome = Outcome::of::<()>(&Err(failure.clone()));
                self.shared.tallies.count(operation, outcome, Duration::ZERO);
                self.ask_where_in_doubt(operation).await;
                return Err(failure);
            }
        };
        let started = Instant::now();
        let irn = call.irn.unwrap_or_default();
        let reply = exchange(self.request(&call), self.shared.timeout, &self.shared.clock).await;
        let status = reply.as_ref().ok().map(|reply| reply.status);
        let result = outcome(operation, reply, read);
        let (outcome, duration) = (Outcome::of(&result), started.elapsed());
        leave.settle(&result, duration);
        self.shared.tallies.count(operation, outcome, duration);
        tracing::debug!(
            operation = operation.name(),
            irn,
            status,
            outcome = outcome.name(),
            duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            "called the authority"
        );
        if result.is_err() {
            self.ask_where_in_doubt(operation).await;
        }
        result
    }

    /// Where many calls fail and it may be because of a few documents or accounts, a question that is about none of
    /// them decides.
    async fn ask_where_in_doubt(&self, operation: Operation) {
        if self.shared.gate.wants_question(operation) {
            let is_alive = self.alive().await;
            self.shared.gate.hear(operation, is_alive);
        }
    }

    fn request(&self, call: &Call<'_>) -> RequestBuilder {
        let url = format!("{}{}", self.shared.root, call.path);
        let mut request =
            self.shared.http.request(call.method.clone(), url).header(ACCEPT, "application/json");
        if call.with_keys {
            for (name, value) in &self.shared.headers {
                request = request.header(*name, value);
            }
        }
        match call.body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Authority").field("root", &self.shared.root).finish_non_exhaustive()
    }
}

fn outcome<T>(
    operation: Operation,
    reply: Result<Reply, Cause>,
    read: impl FnOnce(Answer) -> Option<T>,
) -> Result<T, Failure> {
    let reply = reply.map_err(|cause| classify::failure(operation, cause))?;
    let answer = classify::judge(operation, &reply)?;
    read(answer).ok_or_else(|| classify::failure(operation, Cause::Garbled { status: reply.status }))
}

fn http(settings: &Settings) -> Result<Client, BuildError> {
    let extra = match &settings.extra_ca_pem {
        Some(pem) => Certificate::from_pem_bundle(pem).map_err(|_| BuildError::ExtraCa)?,
        None => Vec::new(),
    };
    if settings.extra_ca_pem.is_some() && extra.is_empty() {
        return Err(BuildError::ExtraCa);
    }
    Client::builder()
        .user_agent(concat!("einvoice/", env!("CARGO_PKG_VERSION")))
        .timeout(settings.timeout)
        .connect_timeout(CONNECT_MAX.min(settings.timeout / 2))
        .pool_idle_timeout(IDLE_MAX)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .tls_certs_merge(extra)
        .build()
        .map_err(BuildError::Client)
}

/// The base URL as text, without a slash at its end.
fn root(base: &Url) -> Result<String, BuildError> {
    let usable = matches!(base.scheme(), "http" | "https")
        && base.has_host()
        && base.query().is_none()
        && base.fragment().is_none();
    usable.then(|| base.as_str().trim_end_matches('/').to_owned()).ok_or(BuildError::BaseUrl)
}

fn sensitive(secret: &SecretString, name: &'static str) -> Result<HeaderValue, BuildError> {
    let mut value = HeaderValue::from_str(secret.expose_secret()).map_err(|_| BuildError::Header(name))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE;
    use jiff::Timestamp;
    use tokio::io::AsyncWriteExt;

    use super::super::breaker::BreakerState;
    use super::super::opening::Held;
    use super::super::operation::ResourceList;
    use super::super::testing::{PUBLIC_PART, Reaction, Server, authority, encrypted, http};
    use super::*;
    use crate::domain::kernel::clock::{MockClock, SystemClock};
    use crate::domain::kernel::ids::TaxpayerId;

    /// An address at which nothing listens.
    fn closed() -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    }

    fn build(base_url: &str, secret: &str, extra_ca_pem: Option<&[u8]>) -> Result<Authority, BuildError> {
        let settings = Settings {
            base_url: base_url.parse().unwrap(),
            api_key: secret.into(),
            api_secret: secret.into(),
            extra_ca_pem: extra_ca_pem.map(<[u8]>::to_vec),
            timeout: Duration::from_secs(1),
            max_concurrent_calls: 64,
        };
        Authority::new(settings, Arc::new(SystemClock))
    }

    #[tokio::test]
    async fn an_effect_that_was_never_sent_is_retryable() {
        for base_url in [closed(), "http://nowhere.invalid".to_owned()] {
            let failure = authority(&base_url, Arc::new(SystemClock)).sign(&Value::Null).await.unwrap_err();
            assert!(
                matches!(failure, Failure::Retryable { reason: Cause::Unreachable { .. } }),
                "{failure:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_connection_without_trust_is_told_from_none() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let authority =
            authority(&format!("https://{}", listener.local_addr().unwrap()), Arc::new(SystemClock));
        let no_tls = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            stream
        };
        let (_stream, result) = tokio::join!(no_tls, authority.sign(&Value::Null));
        let failure = result.unwrap_err();
        let sentence = "the authority could not be reached: no trusted TLS connection could be made";
        assert_eq!(failure.to_string(), sentence);
        assert!(matches!(failure, Failure::Retryable { .. }));
    }

    #[tokio::test]
    async fn every_call_carries_the_keys_and_asks_for_json() {
        let server = Server::json(200, r#"{"data":{"ok":true}}"#).await;
        server.authority().transmit("I").await.unwrap();
        let request = server.received().remove(0);
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
        authority(&base_url, Arc::new(SystemClock)).transmit("I").await.unwrap();
        assert!(server.received()[0].starts_with("POST /gateway/api/v1/invoice/transmit/I HTTP"));
    }

    #[tokio::test]
    async fn a_refusal_carries_the_authority_s_words_and_path() {
        let body = r#"{"code":400,"data":null,"message":"error has occurred","error":{"id":"e-1","handler":"invoice_actions",
            "details":"invoicerequest.invoice.issuedate must be a date","public_message":"the invoice is unsound"}}"#;
        let server = Server::json(400, body).await;
        let failure = server.authority().validate(&Value::Null).await.unwrap_err();
        let Failure::Refused { status, message, field_path, authority_error } = failure else {
            panic!("{failure}")
        };
        assert_eq!((status, message.as_str()), (400, "invoicerequest.invoice.issuedate must be a date"));
        assert_eq!(field_path.as_deref(), Some("invoicerequest.invoice.issuedate"));
        assert_eq!(authority_error.unwrap().id.as_deref(), Some("e-1"));
    }

    #[tokio::test]
    async fn throttling_tells_how_long_to_wait() {
        let server = Server::start(Reaction::Bytes(http(429, "retry-after: 7\r\n", ""))).await;
        let failure = server.authority().sign(&Value::Null).await.unwrap_err();
        assert_eq!(failure, Failure::Throttled { retry_after: Some(Duration::from_secs(7)) });
    }

    #[tokio::test]
    async fn redirects_are_not_followed() {
        let target = Server::json(200, r#"{"data":[]}"#).await;
        let headers = format!("location: http://{}/\r\n", target.address);
        let server = Server::start(Reaction::Bytes(http(307, &headers, ""))).await;
        let failure = server.authority().resource(ResourceList::States).await.unwrap_err();
        assert_eq!(failure, Failure::Retryable { reason: Cause::Misrouted { status: 307 } });
        assert!(target.received().is_empty());
    }

    #[tokio::test]
    async fn an_endless_answer_is_cut_off() {
        let server = Server::start(Reaction::Endless).await;
        let failure = server.authority().resource(ResourceList::States).await.unwrap_err();
        assert_eq!(failure, Failure::Retryable { reason: Cause::Garbled { status: 200 } });
    }

    #[tokio::test]
    async fn an_open_breaker_sends_nothing_until_a_probe_is_due() {
        let clock = Arc::new(MockClock::at(Timestamp::from_second(1_800_000_000).unwrap()));
        let server = Server::json(503, "").await;
        let authority = server.authority_at(clock.clone());
        for _ in 0..20 {
            authority.confirm("I").await.unwrap_err();
        }
        let failure = authority.confirm("J").await.unwrap_err();
        assert_eq!(failure, Failure::BreakerOpen { retry_after: Duration::from_secs(5) });
        assert!(!failure.burns_attempt());
        assert_eq!(server.received().len(), 21, "with the question whether the authority answers at all");
        clock.advance(Duration::from_secs(5));
        assert!(matches!(authority.confirm("J").await, Err(Failure::Retryable { .. })));
        assert_eq!(server.received().len(), 22);
        let view = authority.breakers().swap_remove(Operation::Confirm as usize);
        assert_eq!((view.state, view.openings), (BreakerState::Open, 1));
        let counted: Vec<_> = authority.counters().into_iter().filter(|tally| tally.calls > 0).collect();
        let counted: Vec<_> = counted.iter().map(|tally| (tally.outcome, tally.calls)).collect();
        assert_eq!(counted, [(Outcome::Retryable, 21), (Outcome::BreakerOpen, 1)]);
    }

    #[tokio::test]
    async fn a_document_that_fails_again_and_again_holds_back_nobody_while_the_authority_answers() {
        let healthy = ("GET /api ", http(200, "", r#"{"healthy":true}"#));
        let server = Server::start(Reaction::ByPath(vec![healthy, ("/confirm/", http(500, "", ""))])).await;
        let authority = server.authority();
        let attacker = authority.on_behalf_of(Account::Taxpayer(TaxpayerId(1)));
        for _ in 0..40 {
            assert!(matches!(attacker.confirm("I").await, Err(Failure::Retryable { .. })));
        }
        for number in 0..20 {
            attacker.confirm(&format!("I{number}")).await.unwrap_err();
        }
        assert!(matches!(attacker.confirm("I").await, Err(Failure::BreakerOpen { .. })));
        let view = authority.breakers().swap_remove(Operation::Confirm as usize);
        assert_eq!(view.held, Held::Accounts(vec![Account::Taxpayer(TaxpayerId(1))]));
        assert!(!view.is_outage);
        let other = authority.on_behalf_of(Account::Taxpayer(TaxpayerId(2)));
        assert!(matches!(other.confirm("J").await, Err(Failure::Retryable { .. })), "it is called");
        let asked = server.received().iter().filter(|request| request.starts_with("GET /api ")).count();
        assert_eq!(asked, 1, "once every 5 s at most");
    }

    #[tokio::test]
    async fn an_authority_is_alive_when_it_says_so() {
        for (status, body, alive) in [
            (200, r#"{"healthy":true}"#, true),
            (200, r#"{"healthy":false}"#, false),
            (200, "<html>", false),
            (500, r#"{"healthy":true}"#, false),
        ] {
            let server = Server::json(status, body).await;
            assert_eq!(server.authority().alive().await, alive, "{status} {body}");
            let request = server.received().remove(0);
            assert!(request.starts_with("GET /api HTTP") && !request.contains("x-api-"));
        }
        assert!(!authority(&closed(), Arc::new(SystemClock)).alive().await);
    }

    #[test]
    fn a_download_that_holds_the_document_of_another_irn_is_none() {
        let authority = authority(&closed(), Arc::new(SystemClock));
        for (plain, is_ours) in [
            (r#"{"irn":"INV1-94AD90FB-20260115"}"#, true),
            (r#"{"irn":"inv1-94ad90fb-20260115"}"#, true),
            (r#"{"irn":"INV2-94AD90FB-20260115"}"#, false),
            (r#"{"irn":null}"#, false),
            ("{}", false),
        ] {
            let (iv_hex, bytes) = encrypted(plain.as_bytes());
            let data = URL_SAFE.encode(bytes);
            let document = EncryptedDocument { iv_hex, public_part: PUBLIC_PART.to_owned(), data };
            let read = authority.decrypt("INV1-94AD90FB-20260115", &document);
            assert_eq!(read.err(), (!is_ours).then_some(CryptoError::OtherDocument), "{plain}");
        }
    }

    #[test]
    fn settings_that_cannot_be_used_are_named() {
        for base_url in ["ftp://host", "http://host?a=b", "http://host#a", "mailto:a@b"] {
            assert!(matches!(build(base_url, "k", None), Err(BuildError::BaseUrl)), "{base_url}");
        }
        assert!(matches!(build("http://host", "a\nb", None), Err(BuildError::Header("API key"))));
        for pem in [&b""[..], b"no pem", b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----"] {
            assert!(matches!(build("http://host", "k", Some(pem)), Err(BuildError::ExtraCa)));
        }
        assert!(build("https://host", "k", None).is_ok());
    }

    #[test]
    fn debug_shows_no_secret() {
        let authority = build("https://host", "hidden", None).unwrap();
        assert_eq!(format!("{authority:?}"), "Authority { root: \"https://host\", .. }");
    }
}
