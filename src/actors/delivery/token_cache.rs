//! The access tokens of endpoints, each kept until shortly before its end. A taxpayer has one at a time, asked for
//! by one attempt while the others wait; new settings have a new one. A refresh token that the server replaced is
//! in the books before its access token is used, and the old one is never used again.

use std::sync::Arc;

use dashmap::DashMap;
use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::actors::taxpayer::command::RenewedToken;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::domain::integration::origin::Origin;
use crate::domain::integration::{Auth, Integration, SecretText};
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::db::connections::Store;
use crate::store::webhooks::integrations;
use crate::webhook::GuardedClient;
use crate::webhook::auth::{self, AuthFault, Handshakes};

/// Taxpayers whose tokens are kept before those that are of no use any more are put away.
const SLOTS_MAX: usize = 10_000;

/// What attempts share to say who makes them.
#[derive(Debug, Default)]
pub struct TokenCache {
    slots: DashMap<TaxpayerId, Arc<Mutex<TokenSlot>>>,
    pub(super) handshakes: Handshakes,
}

/// What is known of a taxpayer's token. Who asks for a new one holds the lock.
#[derive(Debug, Default)]
struct TokenSlot {
    token: Option<CachedToken>,
    /// Why there is none: for those who waited while it was asked for.
    fault: Option<(Timestamp, AuthFault)>,
    /// A refresh token that the books have yet to take.
    unkept: Option<RenewedToken>,
}

#[derive(Debug)]
struct CachedToken {
    access: SecretText,
    until: Timestamp,
    /// The settings that it was asked for with.
    version: i64,
    /// The origin that it is for, as the credentials it was given for.
    origin: Option<Origin>,
}

/// What an attempt needs a token for.
#[derive(Debug, Clone)]
pub(super) struct TokenRequest {
    pub(super) version: i64,
    /// The origin that it will be sent to.
    pub(super) origin: Option<Origin>,
    pub(super) now: Timestamp,
    /// The token that the endpoint took for none of its own.
    pub(super) refused: Option<SecretText>,
}

impl TokenCache {
    fn slot(&self, taxpayer: TaxpayerId, now: Timestamp) -> Arc<Mutex<TokenSlot>> {
        if self.slots.len() >= SLOTS_MAX {
            self.slots.retain(|_, slot| {
                Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|slot| slot.is_of_use(now))
            });
        }
        Arc::clone(&self.slots.entry(taxpayer).or_default())
    }
}

impl TokenSlot {
    fn is_of_use(&self, now: Timestamp) -> bool {
        self.unkept.is_some() || self.token.as_ref().is_some_and(|held| held.until > now)
    }

    /// The token, where it is good for these settings, now, and was not refused.
    fn usable(&self, wanted: &TokenRequest) -> Option<SecretText> {
        let is_refused =
            |held: &CachedToken| wanted.refused.as_ref().is_some_and(|refused| refused.is_same(&held.access));
        let is_for_these =
            |held: &CachedToken| held.version >= wanted.version && held.origin == wanted.origin;
        let is_good =
            |held: &&CachedToken| is_for_these(held) && held.until > wanted.now && !is_refused(held);
        self.token.as_ref().filter(is_good).map(|held| held.access.clone())
    }

    /// Why there is none, where that was found out after a moment; a fault that is still to come was found out before
    /// the clock was set back.
    fn failed_since(&self, moment: Timestamp, now: Timestamp) -> Option<AuthFault> {
        self.fault.filter(|(at, _)| moment <= *at && *at <= now).map(|(_, fault)| fault)
    }
}

impl DeliveryDeps {
    /// The token of a taxpayer. A new one is asked for apart from whoever waits for it: who gives up waiting must
    /// not lose a refresh token that is on its way.
    pub(super) async fn token(
        &self,
        taxpayer: TaxpayerId,
        wanted: TokenRequest,
    ) -> Result<SecretText, AuthFault> {
        let slot = self.tokens.slot(taxpayer, wanted.now);
        let patience = self.client.timeout() * 2 / 3;
        let refresh = TokenRefresh {
            taxpayer,
            store: self.store.clone(),
            taxpayers: Arc::clone(&self.taxpayers),
            client: self.client.clone(),
            clock: self.clock.clone(),
        };
        let found = async {
            if let Some(token) = slot.lock().await.usable(&wanted) {
                return Ok(token);
            }
            let asked = tokio::spawn(async move { refresh.run(&mut *slot.lock().await, &wanted).await });
            asked.await.unwrap_or(Err(AuthFault::TokenUnreachable))
        };
        tokio::time::timeout(patience, found).await.unwrap_or(Err(AuthFault::TokenUnreachable))
    }
}

/// What it takes to fetch a token.
struct TokenRefresh {
    taxpayer: TaxpayerId,
    store: Store,
    taxpayers: Arc<TaxpayerHandle>,
    client: GuardedClient,
    clock: SharedClock,
}

impl TokenRefresh {
    async fn run(&self, slot: &mut TokenSlot, wanted: &TokenRequest) -> Result<SecretText, AuthFault> {
        if let Some(token) = slot.usable(wanted) {
            return Ok(token);
        }
        if let Some(fault) = slot.failed_since(wanted.now, self.clock.now()) {
            return Err(fault);
        }
        slot.token = None;
        let fetched = self.fetch(slot, wanted).await;
        slot.fault = fetched.as_ref().err().map(|fault| (self.clock.now(), *fault));
        fetched
    }

    /// The settings are read anew: the refresh token in them may be newer than the one the attempt began with. Another
    /// process may spend it at the same moment; then the one that it was given is used.
    async fn fetch(&self, slot: &mut TokenSlot, wanted: &TokenRequest) -> Result<SecretText, AuthFault> {
        self.keep(slot).await?;
        let mut found = self.settings_for(wanted).await?;
        let mut fetched = self.ask(&found).await;
        if fetched.as_ref().is_err_and(AuthFault::is_spent) {
            let spent = found.auth.refresh_token().cloned();
            found = self.settings_for(wanted).await?;
            if found.auth.refresh_token().zip(spent.as_ref()).is_some_and(|(now, spent)| !now.is_same(spent))
            {
                fetched = self.ask(&found).await;
            }
        }
        let token = fetched?;
        let until = self.clock.now().saturating_add(token.lasts).unwrap_or(Timestamp::MAX);
        slot.unkept = token.refresh.and_then(|given| renewed(&found.auth, given));
        self.keep(slot).await?;
        let Integration { version, origin, .. } = found;
        slot.token = Some(CachedToken { access: token.access.clone(), until, version, origin });
        Ok(token.access)
    }

    async fn ask(&self, found: &Integration) -> Result<auth::Token, AuthFault> {
        let client = self.client.reaching(&found.allowed_networks);
        auth::fetch(&client.map_err(|_| AuthFault::TokenUnreachable)?, &found.auth).await
    }

    /// The settings as they are now. An attempt that began with those for another origin gets no token of these.
    async fn settings_for(&self, wanted: &TokenRequest) -> Result<Integration, AuthFault> {
        let found = integrations::owned_by(&self.store, self.store.reader(), self.taxpayer).await;
        let found = found.map_err(|_| AuthFault::NotStored)?;
        found.filter(|found| found.origin == wanted.origin).ok_or(AuthFault::Changed)
    }

    /// Has the books take a new refresh token.
    async fn keep(&self, slot: &mut TokenSlot) -> Result<(), AuthFault> {
        let Some(renewed) = slot.unkept.clone() else { return Ok(()) };
        match self.taxpayers.store_refresh_token(self.taxpayer, renewed).await {
            Ok(()) => {
                slot.unkept = None;
                Ok(())
            }
            Err(error) => {
                let taxpayer = self.taxpayer;
                tracing::warn!(%taxpayer, %error, "a new refresh token could not be stored; it will be tried again");
                Err(AuthFault::NotStored)
            }
        }
    }
}

/// What the books are told where the server replaced the refresh token.
fn renewed(auth: &Auth, given: SecretText) -> Option<RenewedToken> {
    let used = auth.refresh_token().filter(|used| !used.is_same(&given))?.clone();
    Some(RenewedToken { used, given })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::actors::supervision::Arbiters;
    use crate::actors::taxpayer::command::{IntegrationChange, Onboarding};
    use crate::actors::waiters::Waiters;
    use crate::domain::events::endpoint_health::CircuitPolicy;
    use crate::domain::integration::{ClientAuthentication, Format, TokenClient};
    use crate::domain::kernel::audit::OperatorRequest;
    use crate::domain::kernel::clock::{Clock, SystemClock};
    use crate::store::testing::{TestStore, stores};
    use crate::webhook::auth::TokenError;
    use crate::webhook::{AddressPolicy, Schedule};

    const ID: TaxpayerId = TaxpayerId(1);
    const ORIGIN: &str = "https://erp.example";

    /// An authorization server that counts its calls, and answers each with the number of the call in it.
    async fn server(status: u16, body: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, calls) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&calls);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let body = body.replace('#', &(counted.fetch_add(1, Ordering::Relaxed) + 1).to_string());
                let _ = stream.read(&mut [0; 4_096]).await;
                let head =
                    format!("HTTP/1.1 {status} S\r\nconnection: close\r\ncontent-length: {}", body.len());
                let _ = stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await;
            }
        });
        (address, calls)
    }

    struct TestApp {
        deps: DeliveryDeps,
        arbiters: Arc<Arbiters>,
        test: TestStore,
    }

    impl TestApp {
        /// A taxpayer whose tokens come from a server, for a refresh token.
        async fn with_tokens_of(test: TestStore, server: SocketAddr) -> Self {
            let (clock, arbiters): (SharedClock, _) = (Arc::new(SystemClock), Arc::new(Arbiters::start(1)));
            let taxpayers = Arc::new(TaxpayerHandle::in_tests(&test.store, clock.clone(), &arbiters));
            taxpayers.onboard(ID, Onboarding::sample(ID)).await.unwrap();
            let policy = AddressPolicy::new(vec!["127.0.0.0/8".parse().unwrap()]);
            let deps = DeliveryDeps {
                store: test.store.clone(),
                taxpayers,
                client: GuardedClient::new(policy, Duration::from_secs(30), 64 * 1_024).unwrap(),
                tokens: TokenCache::default(),
                schedule: Schedule::default(),
                circuit: CircuitPolicy::default(),
                max_concurrent: 4,
                wakeups: Waiters::default(),
                is_closing: AtomicBool::new(false),
                clock,
                incidents: Arc::default(),
            };
            let house = Self { deps, arbiters, test };
            house.set(&format!("http://{server}/token"), Some("refresh-0")).await;
            house
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
            let order = IntegrationChange {
                erp_system: None,
                auth: Auth::OAuth2 { client, refresh_token: refresh_token.map(secret) },
                origin: Origin::of(ORIGIN),
                format: Format::Rest,
                allowed_networks: Vec::new(),
                by: OperatorRequest { operator_id: 1, reason: None },
            };
            self.deps.taxpayers.set_integration(ID, order).await.unwrap();
        }

        async fn stored(&self) -> (i64, String) {
            let store = &self.test.store;
            let found = integrations::owned_by(store, store.reader(), ID).await.unwrap().unwrap();
            let Auth::OAuth2 { refresh_token, .. } = found.auth else { panic!() };
            (found.version, refresh_token.expose().to_owned())
        }

        async fn token(&self, wanted: &TokenRequest) -> Result<String, AuthFault> {
            self.deps.token(ID, wanted.clone()).await.map(|token| token.expose().to_owned())
        }

        async fn close(self) {
            self.deps.taxpayers.registry().close();
            self.arbiters.stop();
            self.arbiters.join().await;
        }
    }

    fn wanted() -> TokenRequest {
        TokenRequest { version: 1, origin: Origin::of(ORIGIN), now: SystemClock.now(), refused: None }
    }

    #[actix_rt::test]
    async fn those_who_want_a_token_at_once_ask_for_one() {
        for test in stores().await {
            let (address, calls) = server(200, r#"{"access_token":"t#","expires_in":60}"#).await;
            let house = TestApp::with_tokens_of(test, address).await;
            let wanted = wanted();
            let tokens = join_all((0..8).map(|_| house.token(&wanted))).await;
            assert!(tokens.iter().all(|token| token.as_deref() == Ok("t1")), "{tokens:?}");
            let refused = TokenRequest { refused: Some("t1".to_owned().into()), ..wanted.clone() };
            let tokens = join_all((0..8).map(|_| house.token(&refused))).await;
            assert!(tokens.iter().all(|token| token.as_deref() == Ok("t2")), "{tokens:?}");
            assert_eq!(
                house.token(&TokenRequest { version: 2, ..wanted.clone() }).await.as_deref(),
                Ok("t3")
            );
            let later = wanted.now.saturating_add(Duration::from_mins(2)).unwrap();
            assert_eq!(house.token(&TokenRequest { now: later, ..wanted }).await.as_deref(), Ok("t4"));
            assert_eq!(calls.load(Ordering::Relaxed), 4);
            house.close().await;
        }
    }

    #[actix_rt::test]
    async fn those_who_wait_for_a_token_that_is_refused_share_the_refusal() {
        for test in stores().await {
            let (address, calls) = server(400, r#"{"error":"invalid_grant"}"#).await;
            let house = TestApp::with_tokens_of(test, address).await;
            let (wanted, fault) =
                (wanted(), AuthFault::TokenRefused { status: 400, error: TokenError::InvalidGrant });
            let tokens = join_all((0..8).map(|_| house.token(&wanted))).await;
            assert!(tokens.iter().all(|token| *token == Err(fault)), "{tokens:?}");
            assert_eq!(calls.load(Ordering::Relaxed), 1);
            assert_eq!(house.token(&super::tests::wanted()).await, Err(fault));
            assert_eq!(calls.load(Ordering::Relaxed), 2, "who comes later asks again");
            house.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_refresh_token_is_in_the_books_before_its_access_token_is_used() {
        for test in stores().await {
            let (address, calls) = server(200, r#"{"access_token":"t#","refresh_token":"refresh-#"}"#).await;
            let house = TestApp::with_tokens_of(test, address).await;
            assert_eq!(house.token(&wanted()).await.as_deref(), Ok("t1"));
            assert_eq!(house.stored().await, (1, "refresh-1".to_owned()));
            house.deps.taxpayers.registry().close();
            let refused = TokenRequest { refused: Some("t1".to_owned().into()), ..wanted() };
            for _ in 0..3 {
                let again = TokenRequest { now: SystemClock.now(), ..refused.clone() };
                assert_eq!(house.token(&again).await, Err(AuthFault::NotStored));
                assert_eq!(calls.load(Ordering::Relaxed), 2, "the one that is spent is not used again");
            }
            house.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_token_for_one_origin_is_given_to_no_attempt_at_another() {
        for test in stores().await {
            let (address, calls) = server(200, r#"{"access_token":"t#","expires_in":3600}"#).await;
            let house = TestApp::with_tokens_of(test, address).await;
            let elsewhere = TokenRequest { origin: Origin::of("https://evil.example"), ..wanted() };
            assert_eq!(house.token(&elsewhere).await, Err(AuthFault::Changed));
            assert_eq!(calls.load(Ordering::Relaxed), 0, "none was asked for");
            assert_eq!(house.token(&wanted()).await.as_deref(), Ok("t1"));
            assert_eq!(house.token(&elsewhere).await, Err(AuthFault::Changed), "nor is one that is kept");
            assert_eq!(calls.load(Ordering::Relaxed), 1);
            house.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_refresh_token_that_another_process_spent_is_not_the_last_word() {
        for test in stores().await {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let house = TestApp::with_tokens_of(test, listener.local_addr().unwrap()).await;
            let answer = async |status: u16, body: &str| {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !String::from_utf8_lossy(&request).contains("refresh_token=refresh-") {
                    assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0, "it ended early");
                }
                let (used, given) = ("refresh-0".to_owned().into(), "refresh-1".to_owned().into());
                let other = RenewedToken { used, given };
                house.deps.taxpayers.store_refresh_token(ID, other).await.unwrap();
                let head =
                    format!("HTTP/1.1 {status} S\r\nconnection: close\r\ncontent-length: {}", body.len());
                stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).await.unwrap();
                String::from_utf8_lossy(&request).into_owned()
            };
            let server = async {
                assert!(answer(400, r#"{"error":"invalid_grant"}"#).await.contains("refresh-0"));
                assert!(answer(200, r#"{"access_token":"t"}"#).await.contains("refresh-1"));
            };
            let wanted = wanted();
            let (token, ()) = tokio::join!(house.token(&wanted), server);
            assert_eq!(token.as_deref(), Ok("t"));
            house.close().await;
        }
    }

    #[actix_rt::test]
    async fn a_refresh_token_in_place_of_one_that_is_gone_comes_too_late() {
        for test in stores().await {
            let (address, _) = server(200, "{}").await;
            let house = TestApp::with_tokens_of(test, address).await;
            let url = format!("http://{address}/token");
            let keep = async |used: &str, given: &str| {
                let (used, given) = (used.to_owned().into(), given.to_owned().into());
                let token = RenewedToken { used, given };
                house.deps.taxpayers.store_refresh_token(ID, token).await.unwrap();
                house.stored().await
            };
            assert_eq!(keep("refresh-0", "a").await, (1, "a".to_owned()));
            assert_eq!(keep("refresh-0", "b").await, (1, "a".to_owned()), "another came first");
            house.set(&url, None).await;
            assert_eq!(house.stored().await, (2, "a".to_owned()));
            assert_eq!(
                keep("a", "c").await,
                (2, "c".to_owned()),
                "spent, whatever an operator changed beside it"
            );
            house.set(&url, Some("e")).await;
            assert_eq!(keep("c", "f").await, (3, "e".to_owned()), "an operator gave another");
            house.close().await;
        }
    }
}
