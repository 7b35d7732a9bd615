//! The access tokens of endpoints, each kept until shortly before its end. A taxpayer has one at a time, asked for
//! by one attempt while the others wait; new settings have a new one. A refresh token that the server replaced is
//! in the books before its access token is used, and the old one is never used again.

use std::sync::Arc;

use dashmap::DashMap;
use jiff::Timestamp;
use tokio::sync::Mutex;

use crate::actors::taxpayer::command::RenewedToken;
use crate::actors::taxpayer::door::Taxpayers;
use crate::actors::webhook::courier::Satchel;
use crate::domain::clock::SharedClock;
use crate::domain::ids::TaxpayerId;
use crate::domain::integration::{Auth, Integration, SecretText};
use crate::store::database::Store;
use crate::store::integrations;
use crate::webhook::GuardedClient;
use crate::webhook::auth::{self, AuthFault, Handshakes};

/// Taxpayers whose tokens are kept before those that are of no use any more are put away.
const SLOTS_MAX: usize = 10_000;

/// What attempts share to say who makes them.
#[derive(Debug, Default)]
pub struct Keyring {
    slots: DashMap<TaxpayerId, Arc<Mutex<Slot>>>,
    pub(super) handshakes: Handshakes,
}

/// What is known of a taxpayer's token. Who asks for a new one holds the lock.
#[derive(Debug, Default)]
struct Slot {
    token: Option<Held>,
    /// Why there is none: for those who waited while it was asked for.
    fault: Option<(Timestamp, AuthFault)>,
    /// A refresh token that the books have yet to take.
    unkept: Option<RenewedToken>,
}

#[derive(Debug)]
struct Held {
    access: SecretText,
    until: Timestamp,
    /// The settings that it was asked for with.
    version: i64,
}

/// What an attempt needs a token for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) version: i64,
    pub(super) now: Timestamp,
    /// The token that the endpoint took for none of its own.
    pub(super) refused: Option<SecretText>,
}

impl Keyring {
    fn slot(&self, taxpayer: TaxpayerId, now: Timestamp) -> Arc<Mutex<Slot>> {
        if self.slots.len() >= SLOTS_MAX {
            self.slots.retain(|_, slot| {
                Arc::strong_count(slot) > 1 || slot.try_lock().is_ok_and(|slot| slot.is_of_use(now))
            });
        }
        Arc::clone(&self.slots.entry(taxpayer).or_default())
    }
}

impl Slot {
    fn is_of_use(&self, now: Timestamp) -> bool {
        self.unkept.is_some() || self.token.as_ref().is_some_and(|held| held.until > now)
    }

    /// The token, where it is good for these settings, now, and was not refused.
    fn usable(&self, wanted: &Wanted) -> Option<SecretText> {
        let is_refused =
            |held: &Held| wanted.refused.as_ref().is_some_and(|refused| refused.is_same(&held.access));
        let is_good =
            |held: &&Held| held.version >= wanted.version && held.until > wanted.now && !is_refused(held);
        self.token.as_ref().filter(is_good).map(|held| held.access.clone())
    }

    fn failed_since(&self, moment: Timestamp) -> Option<AuthFault> {
        self.fault.filter(|(at, _)| *at >= moment).map(|(_, fault)| fault)
    }
}

impl Satchel {
    /// The token of a taxpayer. A new one is asked for apart from whoever waits for it: who gives up waiting must
    /// not lose a refresh token that is on its way.
    pub(super) async fn token(&self, taxpayer: TaxpayerId, wanted: Wanted) -> Result<SecretText, AuthFault> {
        let slot = self.keyring.slot(taxpayer, wanted.now);
        let patience = self.client.timeout() * 2 / 3;
        let errand = Errand {
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
            let asked = tokio::spawn(async move { errand.run(&mut *slot.lock().await, &wanted).await });
            asked.await.unwrap_or(Err(AuthFault::TokenUnreachable))
        };
        tokio::time::timeout(patience, found).await.unwrap_or(Err(AuthFault::TokenUnreachable))
    }
}

/// What it takes to fetch a token.
struct Errand {
    taxpayer: TaxpayerId,
    store: Store,
    taxpayers: Arc<Taxpayers>,
    client: GuardedClient,
    clock: SharedClock,
}

impl Errand {
    async fn run(&self, slot: &mut Slot, wanted: &Wanted) -> Result<SecretText, AuthFault> {
        if let Some(token) = slot.usable(wanted) {
            return Ok(token);
        }
        if let Some(fault) = slot.failed_since(wanted.now) {
            return Err(fault);
        }
        slot.token = None;
        let fetched = self.fetch(slot).await;
        slot.fault = fetched.as_ref().err().map(|fault| (self.clock.now(), *fault));
        fetched
    }

    /// The settings are read anew: the refresh token in them may be newer than the one the attempt began with.
    async fn fetch(&self, slot: &mut Slot) -> Result<SecretText, AuthFault> {
        self.keep(slot).await?;
        let found = integrations::owned_by(&self.store, self.store.reader(), self.taxpayer).await;
        let found = found.map_err(|_| AuthFault::NotStored)?.ok_or(AuthFault::Changed)?;
        let token = auth::fetch(&self.client, &found.auth).await?;
        let until = self.clock.now().saturating_add(token.lasts).unwrap_or(Timestamp::MAX);
        slot.unkept = token.refresh.and_then(|given| renewed(&found, given));
        self.keep(slot).await?;
        slot.token = Some(Held { access: token.access.clone(), until, version: found.version });
        Ok(token.access)
    }

    /// Has the books take a new refresh token.
    async fn keep(&self, slot: &mut Slot) -> Result<(), AuthFault> {
        let Some(renewed) = slot.unkept.clone() else { return Ok(()) };
        match self.taxpayers.keep_refresh_token(self.taxpayer, renewed).await {
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
fn renewed(integration: &Integration, given: SecretText) -> Option<RenewedToken> {
    match &integration.auth {
        Auth::OAuth2 { refresh_token, .. } if !refresh_token.is_same(&given) => {
            Some(RenewedToken { version: integration.version, used: refresh_token.clone(), given })
        }
        _ => None,
    }
}
