//! Verifies each taxpayer with the authority after onboarding, and again with growing delays until the authority
//! confirms the taxpayer. The schedule is a lane in the database, so it survives a crash.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use crate::actors::supervision::{Arbiters, NodeKind, RestartPolicy, Tree, supervise};
use crate::actors::taxpayer::command::VerificationResult;
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::authority::{Authority, AuthorityFailure, Entity};
use crate::domain::kernel::clock::SharedClock;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::domain::party::verification::{ListedBusiness, UnverifiedReason, Verification};
use crate::store::accounts::taxpayers;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::{self, LaneKind, Lease};

/// The interval at which the verifier looks for due verifications.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The maximum number of taxpayers verified concurrently.
const AT_ONCE: u64 = 8;
/// The minimum and the maximum delay before a taxpayer is verified again.
const AGAIN_MIN: SignedDuration = SignedDuration::from_secs(5);
const AGAIN_MAX: SignedDuration = SignedDuration::from_hours(24);

#[derive(Clone)]
pub struct Verifier {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub authority: Authority,
    pub clock: SharedClock,
    /// The id of the authority's entity that lists the businesses of all taxpayers. If `None`, each taxpayer is an
    /// entity of its own, and its business id is the entity id.
    pub entity_id: Option<String>,
    /// The owner name that this process writes into its leases.
    pub owner: String,
    pub lease: Duration,
}

impl Verifier {
    /// Starts the verifier under supervision on the background arbiter.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters) -> Addr<VerifierActor> {
        let node = tree.node(NodeKind::Inbound, 0, "verifier");
        supervise(arbiters.background(), node, RestartPolicy::default(), |ctx| VerifierActor {
            verifier: self,
            _address: ctx.address(),
        })
    }

    async fn run(self) {
        loop {
            let is_more = self.verify_due().await.unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to load due verifications; will retry");
                false
            });
            if !is_more {
                sleep(LOOK_EVERY).await;
            }
        }
    }

    /// Verifies one batch of due taxpayers. Returns true if more taxpayers may be due.
    pub async fn verify_due(&self) -> Result<bool, StoreError> {
        if !lanes::any_due(&self.store, LaneKind::Verification).await? {
            return Ok(false);
        }
        let claimed =
            lanes::claim(&self.store, LaneKind::Verification, &self.owner, self.lease, AT_ONCE).await?;
        for (lease, verified) in
            claimed.iter().zip(join_all(claimed.iter().map(|one| self.verify(one))).await)
        {
            if let Err(error) = verified {
                tracing::warn!(taxpayer = lease.key, %error, "failed to verify a taxpayer; will retry");
            }
        }
        Ok(!claimed.is_empty())
    }

    async fn verify(&self, lease: &Lease) -> Result<(), StoreError> {
        let taxpayer = match lease.key.parse() {
            Ok(id) => taxpayers::with_id(self.store.reader(), TaxpayerId(id)).await?,
            Err(_) => None,
        };
        let again = match taxpayer.filter(|taxpayer| !taxpayer.verification.is_verified()) {
            Some(taxpayer) => self.ask_about(&taxpayer).await,
            None => None,
        };
        let tx = self.store.begin().await?;
        match lanes::release(&tx, lease, again).await {
            // Another process has taken over the lane. It verifies the taxpayer again and sets the next attempt.
            Err(StoreError::Stale) => tx.rollback().await,
            released => {
                released?;
                tx.commit().await
            }
        }
    }

    /// Verifies a taxpayer. Returns the delay before the next attempt, or None if the taxpayer is verified now.
    async fn ask_about(&self, taxpayer: &Taxpayer) -> Option<Duration> {
        let id = self.entity_id.as_deref().unwrap_or(&taxpayer.business_id);
        let answer = self.authority.entity(id).await;
        let wait = answer.as_ref().err().and_then(AuthorityFailure::retry_after);
        let again = after(self.clock.now(), taxpayer.created_at).max(wait.unwrap_or_default());
        let Some(found) = found(taxpayer, answer) else { return Some(again) };
        match self.record(taxpayer, found).await {
            Ok(recorded) if recorded.verification.is_verified() => None,
            Ok(_) => Some(again),
            Err(failure) => {
                tracing::warn!(taxpayer = taxpayer.id.0, %failure, "failed to record a verification; will retry");
                Some(again)
            }
        }
    }

    async fn record(&self, taxpayer: &Taxpayer, found: Verification) -> Result<Taxpayer, TaxpayerError> {
        let recorded = self
            .taxpayers
            .record_verification(taxpayer.id, VerificationResult { found, by: None, reason: None })
            .await?;
        if recorded.verification != taxpayer.verification && !recorded.verification.is_verified() {
            let reason = recorded.verification.reason();
            tracing::warn!(taxpayer = taxpayer.id.0, reason, "the authority does not confirm a taxpayer");
        }
        Ok(recorded)
    }
}

/// Interprets the authority's answer. Returns None if the call was not made because of our own limits or breakers.
fn found(taxpayer: &Taxpayer, answer: Result<Entity, AuthorityFailure>) -> Option<Verification> {
    match answer {
        Ok(entity) => {
            let listed = entity.businesses.iter();
            let listed = listed.map(|one| ListedBusiness { id: &one.id, tin: one.tin.as_deref() });
            Some(Verification::compare(&taxpayer.business_id, &taxpayer.tin, listed))
        }
        Err(AuthorityFailure::NotFound { .. }) => {
            Some(Verification::Unverified(UnverifiedReason::BusinessUnknown))
        }
        Err(failure) => {
            failure.counts_as_attempt().then_some(Verification::Unverified(UnverifiedReason::NoAnswer))
        }
    }
}

/// Returns the time since onboarding, at least `AGAIN_MIN` and at most `AGAIN_MAX`, so the delay about doubles.
fn after(now: Timestamp, since: Timestamp) -> Duration {
    let waited = now.duration_since(since).clamp(AGAIN_MIN, AGAIN_MAX);
    waited.try_into().unwrap_or(LOOK_EVERY)
}

pub struct VerifierActor {
    verifier: Verifier,
    /// The actor's own address. actix does not stop the actor while this address exists.
    _address: Addr<Self>,
}

impl Actor for VerifierActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(self.verifier.clone().run().into_actor(self));
    }
}

impl Supervised for VerifierActor {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_is_asked_again_after_as_long_as_it_has_been() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        for (now, seconds) in [(0, 5), (7, 7), (600, 600), (86_400, 86_400), (1_000_000, 86_400), (-9, 5)] {
            assert_eq!(after(at(now), at(0)), Duration::from_secs(seconds), "{now}");
        }
    }
}
