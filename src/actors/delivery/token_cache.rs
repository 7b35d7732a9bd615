//! Caches the access tokens for endpoints until shortly before they expire. Each taxpayer has one token, for the
//! current settings. One attempt fetches the token while the other attempts for the same taxpayer wait. If the server
//! rotates the refresh token, the new refresh token is stored before the new access token is used, and the old refresh
//! token is never used again.

use std::sync::Arc;

use dashmap::DashMap;
use jiff::Timestamp;
use timing::clock::SharedClock;
use tokio::sync::Mutex;
use webhook_client::GuardedClient;
use webhook_client::auth::{self, AuthFault, NtlmConnections};

use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::erp_settings::access_token_request;
use crate::actors::taxpayer::commands::StoreRefreshToken;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::domain::integration::origin::Origin;
use crate::domain::integration::{Auth, Integration, SecretText};
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::webhooks::integrations;

/// When this many taxpayers are cached, entries are removed if no attempt uses them and they contain neither a valid
/// token nor a refresh token that is not stored yet.
const SLOTS_MAX: usize = 10_000;

/// Access tokens and NTLM connections, shared by all attempts.
#[derive(Debug, Default)]
pub struct TokenCache {
    slots: DashMap<TaxpayerId, Arc<Mutex<TokenSlot>>>,
    pub(super) ntlm: NtlmConnections,
}

/// The cached token of one taxpayer. The task that fetches a new token holds the lock of the slot.
#[derive(Debug, Default)]
struct TokenSlot {
    token: Option<CachedToken>,
    /// The time and reason of the last failure to fetch a token. An attempt that waited while that fetch was running
    /// fails with the same reason, and does not fetch again.
    fault: Option<(Timestamp, AuthFault)>,
    /// A rotated refresh token that is not stored yet.
    unstored: Option<StoreRefreshToken>,
}

#[derive(Debug)]
struct CachedToken {
    access: SecretText,
    until: Timestamp,
    /// The version of the settings with which the token was fetched.
    version: i64,
    /// The origin for which the credentials were set.
    origin: Option<Origin>,
}

/// Describes the token that an attempt needs.
#[derive(Debug, Clone)]
pub(super) struct TokenRequest {
    pub(super) version: i64,
    /// The origin to which the token will be sent.
    pub(super) origin: Option<Origin>,
    pub(super) now: Timestamp,
    /// The token that the endpoint has just refused, if any. It must not be used again.
    pub(super) refused: Option<SecretText>,
}

impl TokenCache {
    fn slot(&self, taxpayer: TaxpayerId, now: Timestamp) -> Arc<Mutex<TokenSlot>> {
        if self.slots.len() >= SLOTS_MAX {
            self.slots.retain(|_, slot| {
                Arc::strong_count(slot) > 1
                    || slot.try_lock().is_ok_and(|slot| slot.must_be_kept(now))
            });
        }
        Arc::clone(&self.slots.entry(taxpayer).or_default())
    }
}

impl TokenSlot {
    fn must_be_kept(&self, now: Timestamp) -> bool {
        self.unstored.is_some() || self.token.as_ref().is_some_and(|held| held.until > now)
    }

    /// Returns the cached token if it fits the settings, has not expired and was not refused.
    fn usable_token(&self, request: &TokenRequest) -> Option<SecretText> {
        let held = self.token.as_ref()?;
        let is_for_these = held.version >= request.version && held.origin == request.origin;
        let is_refused = request
            .refused
            .as_ref()
            .is_some_and(|refused| refused.has_same_text(&held.access));
        (is_for_these && held.until > request.now && !is_refused).then(|| held.access.clone())
    }

    /// Returns the reason of the last failure if the failure happened between `moment` and `now`. A failure after `now`
    /// is ignored: its time is from before the clock was set back.
    fn failure_since(&self, moment: Timestamp, now: Timestamp) -> Option<AuthFault> {
        self.fault
            .filter(|(at, _)| moment <= *at && *at <= now)
            .map(|(_, fault)| fault)
    }
}

impl DeliveryDeps {
    /// Returns the access token of a taxpayer. Fails with `TokenUnreachable` after two thirds of an attempt's timeout.
    /// A new token is fetched in a separate task, so that a rotated refresh token is not lost when the caller stops
    /// waiting.
    pub(super) async fn token(
        &self,
        taxpayer: TaxpayerId,
        request: TokenRequest,
    ) -> Result<SecretText, AuthFault> {
        let slot = self.tokens.slot(taxpayer, request.now);
        let wait_max = self.client.timeout() * 2 / 3;
        let refresh = TokenRefresh {
            taxpayer,
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            client: self.client.clone(),
            clock: self.clock.clone(),
        };
        let found = async {
            if let Some(token) = slot.lock().await.usable_token(&request) {
                return Ok(token);
            }
            let fetched =
                tokio::spawn(async move { refresh.run(&mut *slot.lock().await, &request).await });
            fetched.await.unwrap_or(Err(AuthFault::TokenUnreachable))
        };
        tokio::time::timeout(wait_max, found)
            .await
            .unwrap_or(Err(AuthFault::TokenUnreachable))
    }
}

/// Fetches a new access token for one taxpayer.
struct TokenRefresh {
    taxpayer: TaxpayerId,
    store: Store,
    taxpayers: Arc<TaxpayerHandle>,
    client: GuardedClient,
    clock: SharedClock,
}

impl TokenRefresh {
    async fn run(
        &self,
        slot: &mut TokenSlot,
        request: &TokenRequest,
    ) -> Result<SecretText, AuthFault> {
        if let Some(token) = slot.usable_token(request) {
            return Ok(token);
        }
        if let Some(fault) = slot.failure_since(request.now, self.clock.now()) {
            return Err(fault);
        }
        slot.token = None;
        let fetched = self.fetch_token(slot, request).await;
        slot.fault = fetched
            .as_ref()
            .err()
            .map(|fault| (self.clock.now(), *fault));
        fetched
    }

    /// Fetches a token with the settings that are stored now, because they may contain a newer refresh token than the
    /// attempt knows. If the server rejects the refresh token and another process has stored a newer one since, tries
    /// once more with the newer one.
    async fn fetch_token(
        &self,
        slot: &mut TokenSlot,
        request: &TokenRequest,
    ) -> Result<SecretText, AuthFault> {
        self.store_rotated_refresh_token(slot).await?;
        let mut found = self.load_settings(request).await?;
        let mut fetched = self.request_token(&found).await;
        if fetched
            .as_ref()
            .is_err_and(|fault| fault.is_invalid_grant())
        {
            let spent = found.auth.refresh_token().cloned();
            found = self.load_settings(request).await?;
            if found
                .auth
                .refresh_token()
                .zip(spent.as_ref())
                .is_some_and(|(now, spent)| !now.has_same_text(spent))
            {
                fetched = self.request_token(&found).await;
            }
        }
        let token = fetched?;
        let access = SecretText::from(token.access_token);
        let until = self
            .clock
            .now()
            .saturating_add(token.lifetime)
            .unwrap_or(Timestamp::MAX);
        slot.unstored = token
            .refresh_token
            .and_then(|given| refresh_token_replacement(&found.auth, given.into()));
        self.store_rotated_refresh_token(slot).await?;
        let Integration {
            version, origin, ..
        } = found;
        slot.token = Some(CachedToken {
            access: access.clone(),
            until,
            version,
            origin,
        });
        Ok(access)
    }

    async fn request_token(&self, found: &Integration) -> Result<auth::Token, AuthFault> {
        let client = self.client.for_networks(&found.allowed_networks);
        let client = client.map_err(|_| AuthFault::TokenUnreachable)?;
        let wanted = access_token_request(&found.auth).ok_or(AuthFault::Changed)?;
        auth::fetch(&client, wanted).await
    }

    /// Loads the current settings. Fails if their origin differs from the origin in the attempt's settings.
    async fn load_settings(&self, request: &TokenRequest) -> Result<Integration, AuthFault> {
        let found = integrations::owned_by(&self.store, self.store.reader(), self.taxpayer).await;
        let found = found.map_err(|_| AuthFault::NotStored)?;
        found
            .filter(|found| found.origin == request.origin)
            .ok_or(AuthFault::Changed)
    }

    /// Stores the rotated refresh token of the slot, if there is one that is not stored yet.
    async fn store_rotated_refresh_token(&self, slot: &mut TokenSlot) -> Result<(), AuthFault> {
        let Some(renewed) = slot.unstored.clone() else {
            return Ok(());
        };
        match self.taxpayers.send(self.taxpayer, renewed).await {
            Ok(()) => {
                slot.unstored = None;
                Ok(())
            }
            Err(error) => {
                let taxpayer = self.taxpayer;
                tracing::warn!(%taxpayer, %error, "failed to store a rotated refresh token; will retry");
                Err(AuthFault::NotStored)
            }
        }
    }
}

/// Returns the command that replaces the stored refresh token with `received`, the one that the server sent. Returns
/// `None` if no refresh token is stored, or if the server sent the stored one again.
fn refresh_token_replacement(auth: &Auth, received: SecretText) -> Option<StoreRefreshToken> {
    let used = auth
        .refresh_token()
        .filter(|used| !used.has_same_text(&received))?
        .clone();
    Some(StoreRefreshToken {
        used_token: used,
        new_token: received,
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use address_policy::AddressPolicy;
    use futures_util::future::join_all;
    use supervision::Arbiters;
    use timing::clock::{Clock, SystemClock};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use webhook_client::RetrySchedule;
    use webhook_client::auth::TokenError;

    use super::*;
    use crate::actors::dispatch::IsolationTurns;
    use crate::actors::keyed_notify::KeyedNotify;
    use crate::actors::taxpayer::commands::{Onboard, SetIntegration};
    use crate::domain::events::endpoint_health::CircuitPolicy;
    use crate::domain::integration::{ClientAuthentication, Format, TokenClient};
    use crate::domain::kernel::audit::Actor;
    use crate::store::testing::{TestStore, stores};

    const ID: TaxpayerId = TaxpayerId(1);
    const ORIGIN: &str = "https://erp.example";

    /// Starts an authorization server that counts its calls and replaces `#` in `body` with the count.
    async fn server(status: u16, body: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let body = body.replace(
                    '#',
                    &(counted.fetch_add(1, Ordering::Relaxed) + 1).to_string(),
                );
                let _ = stream.read(&mut [0; 4_096]).await;
                let head = format!(
                    "HTTP/1.1 {status} S\r\nconnection: close\r\ncontent-length: {}",
                    body.len()
                );
                let _ = stream
                    .write_all(format!("{head}\r\n\r\n{body}").as_bytes())
                    .await;
            }
        });
        (address, calls)
    }

    struct TokenFixture {
        deps: DeliveryDeps,
        arbiters: Arc<Arbiters>,
        test: TestStore,
    }

    impl TokenFixture {
        /// Creates a taxpayer whose access tokens come from `server`.
        async fn with_token_server(test: TestStore, server: SocketAddr) -> Self {
            let (clock, arbiters): (SharedClock, _) =
                (Arc::new(SystemClock), Arc::new(Arbiters::start(1)));
            let taxpayers = Arc::new(TaxpayerHandle::in_tests(
                &test.store,
                clock.clone(),
                &arbiters,
            ));
            taxpayers.send(ID, Onboard::sample(ID)).await.unwrap();
            let policy = AddressPolicy::new(vec!["127.0.0.0/8".parse().unwrap()]);
            let deps = DeliveryDeps {
                store: test.store.clone(),
                taxpayers,
                client: GuardedClient::new(policy, Duration::from_secs(30), 64 * 1_024, "einvoice")
                    .unwrap(),
                tokens: TokenCache::default(),
                schedule: RetrySchedule::default(),
                circuit: CircuitPolicy::default(),
                max_concurrent: 4,
                wakeups: KeyedNotify::default(),
                turns: IsolationTurns::default(),
                is_closing: AtomicBool::new(false),
                is_paused: false,
                clock,
                incidents: Arc::default(),
                durations: Arc::default(),
            };
            let fixture = Self {
                deps,
                arbiters,
                test,
            };
            fixture
                .set(&format!("http://{server}/token"), Some("refresh-0"))
                .await;
            fixture
        }

        async fn set(&self, token_url: &str, refresh_token: Option<&str>) {
            let secret = |text: &str| SecretText::from(text.to_owned());
            let client = TokenClient {
                token_url: token_url.to_owned(),
                client_id: "c".into(),
                client_secret: Some(secret("s")),
                scope: None,
                authentication: ClientAuthentication::Basic,
            };
            let command = SetIntegration {
                erp_system: None,
                auth: Auth::OAuth2 {
                    client,
                    refresh_token: refresh_token.map(secret),
                },
                origin: Origin::from_url(ORIGIN),
                format: Format::Rest,
                allowed_networks: None,
                by: Actor::Operator(1),
                reason: None,
            };
            self.deps.taxpayers.send(ID, command).await.unwrap();
        }

        async fn stored_token(&self) -> (i64, String) {
            let store = &self.test.store;
            let found = integrations::owned_by(store, store.reader(), ID)
                .await
                .unwrap()
                .unwrap();
            let Auth::OAuth2 { refresh_token, .. } = found.auth else {
                panic!()
            };
            (found.version, refresh_token.expose().to_owned())
        }

        async fn token(&self, wanted: &TokenRequest) -> Result<String, AuthFault> {
            self.deps
                .token(ID, wanted.clone())
                .await
                .map(|token| token.expose().to_owned())
        }

        async fn close(self) {
            self.deps.taxpayers.registry().close();
            self.arbiters.stop();
            self.arbiters.join().await;
        }
    }

    fn token_request() -> TokenRequest {
        TokenRequest {
            version: 1,
            origin: Origin::from_url(ORIGIN),
            now: SystemClock.now(),
            refused: None,
        }
    }

    #[actix_rt::test]
    async fn concurrent_attempts_fetch_one_token() {
        for test in stores().await {
            let (address, calls) = server(200, r#"{"access_token":"t#","expires_in":60}"#).await;
            let fixture = TokenFixture::with_token_server(test, address).await;
            let wanted = token_request();
            let tokens = join_all((0..8).map(|_| fixture.token(&wanted))).await;
            assert!(
                tokens.iter().all(|token| token.as_deref() == Ok("t1")),
                "{tokens:?}"
            );
            let refused = TokenRequest {
                refused: Some("t1".to_owned().into()),
                ..wanted.clone()
            };
            let tokens = join_all((0..8).map(|_| fixture.token(&refused))).await;
            assert!(
                tokens.iter().all(|token| token.as_deref() == Ok("t2")),
                "{tokens:?}"
            );
            assert_eq!(
                fixture
                    .token(&TokenRequest {
                        version: 2,
                        ..wanted.clone()
                    })
                    .await
                    .as_deref(),
                Ok("t3")
            );
            let later = wanted.now.saturating_add(Duration::from_mins(2)).unwrap();
            assert_eq!(
                fixture
                    .token(&TokenRequest {
                        now: later,
                        ..wanted
                    })
                    .await
                    .as_deref(),
                Ok("t4")
            );
            assert_eq!(calls.load(Ordering::Relaxed), 4);
            fixture.close().await;
        }
    }

    #[actix_rt::test]
    async fn waiting_attempts_share_a_refusal() {
        for test in stores().await {
            let (address, calls) = server(400, r#"{"error":"invalid_grant"}"#).await;
            let fixture = TokenFixture::with_token_server(test, address).await;
            let wanted = token_request();
            let fault = AuthFault::TokenRefused {
                status: 400,
                error: TokenError::InvalidGrant,
            };
            let tokens = join_all((0..8).map(|_| fixture.token(&wanted))).await;
            assert!(
                tokens.iter().all(|token| *token == Err(fault)),
                "{tokens:?}"
            );
            assert_eq!(calls.load(Ordering::Relaxed), 1);
            assert_eq!(
                fixture.token(&super::tests::token_request()).await,
                Err(fault)
            );
            assert_eq!(
                calls.load(Ordering::Relaxed),
                2,
                "a later attempt asks again"
            );
            fixture.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_rotated_refresh_token_is_stored_before_its_access_token_is_used() {
        for test in stores().await {
            let (address, calls) =
                server(200, r#"{"access_token":"t#","refresh_token":"refresh-#"}"#).await;
            let fixture = TokenFixture::with_token_server(test, address).await;
            assert_eq!(fixture.token(&token_request()).await.as_deref(), Ok("t1"));
            assert_eq!(fixture.stored_token().await, (1, "refresh-1".to_owned()));
            fixture.deps.taxpayers.registry().close();
            let refused = TokenRequest {
                refused: Some("t1".to_owned().into()),
                ..token_request()
            };
            for _ in 0..3 {
                let again = TokenRequest {
                    now: SystemClock.now(),
                    ..refused.clone()
                };
                assert_eq!(fixture.token(&again).await, Err(AuthFault::NotStored));
                assert_eq!(
                    calls.load(Ordering::Relaxed),
                    2,
                    "a used refresh token is not used again"
                );
            }
            fixture.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_token_for_one_origin_is_not_used_for_another() {
        for test in stores().await {
            let (address, calls) = server(200, r#"{"access_token":"t#","expires_in":3600}"#).await;
            let fixture = TokenFixture::with_token_server(test, address).await;
            let elsewhere = TokenRequest {
                origin: Origin::from_url("https://evil.example"),
                ..token_request()
            };
            assert_eq!(fixture.token(&elsewhere).await, Err(AuthFault::Changed));
            assert_eq!(calls.load(Ordering::Relaxed), 0, "no token was fetched");
            assert_eq!(fixture.token(&token_request()).await.as_deref(), Ok("t1"));
            assert_eq!(
                fixture.token(&elsewhere).await,
                Err(AuthFault::Changed),
                "not from the cache either"
            );
            assert_eq!(calls.load(Ordering::Relaxed), 1);
            fixture.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_refresh_token_used_by_another_process_is_replaced_by_the_rotated_one() {
        for test in stores().await {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let fixture =
                TokenFixture::with_token_server(test, listener.local_addr().unwrap()).await;
            let answer = async |status: u16, body: &str| {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !String::from_utf8_lossy(&request).contains("refresh_token=refresh-") {
                    assert_ne!(
                        stream.read_buf(&mut request).await.unwrap(),
                        0,
                        "it ended early"
                    );
                }
                let used = "refresh-0".to_owned().into();
                let given = "refresh-1".to_owned().into();
                let other = StoreRefreshToken {
                    used_token: used,
                    new_token: given,
                };
                fixture.deps.taxpayers.send(ID, other).await.unwrap();
                let head = format!(
                    "HTTP/1.1 {status} S\r\nconnection: close\r\ncontent-length: {}",
                    body.len()
                );
                stream
                    .write_all(format!("{head}\r\n\r\n{body}").as_bytes())
                    .await
                    .unwrap();
                String::from_utf8_lossy(&request).into_owned()
            };
            let server = async {
                assert!(
                    answer(400, r#"{"error":"invalid_grant"}"#)
                        .await
                        .contains("refresh-0")
                );
                assert!(
                    answer(200, r#"{"access_token":"t"}"#)
                        .await
                        .contains("refresh-1")
                );
            };
            let wanted = token_request();
            let (token, ()) = tokio::join!(fixture.token(&wanted), server);
            assert_eq!(token.as_deref(), Ok("t"));
            fixture.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_rotated_refresh_token_does_not_replace_a_newer_one() {
        for test in stores().await {
            let (address, _) = server(200, "{}").await;
            let fixture = TokenFixture::with_token_server(test, address).await;
            let url = format!("http://{address}/token");
            let keep = async |used: &str, given: &str| {
                let used = used.to_owned().into();
                let given = given.to_owned().into();
                let token = StoreRefreshToken {
                    used_token: used,
                    new_token: given,
                };
                fixture.deps.taxpayers.send(ID, token).await.unwrap();
                fixture.stored_token().await
            };
            assert_eq!(keep("refresh-0", "a").await, (1, "a".to_owned()));
            assert_eq!(
                keep("refresh-0", "b").await,
                (1, "a".to_owned()),
                "another rotation came first"
            );
            fixture.set(&url, None).await;
            assert_eq!(fixture.stored_token().await, (2, "a".to_owned()));
            assert_eq!(
                keep("a", "c").await,
                (2, "c".to_owned()),
                "rotated, whatever else an operator changed"
            );
            fixture.set(&url, Some("e")).await;
            assert_eq!(
                keep("c", "f").await,
                (3, "e".to_owned()),
                "an operator set another one"
            );
            fixture.close().await;
        }
    }
}
