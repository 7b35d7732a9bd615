//! Verifies each taxpayer with the authority after onboarding, and again with growing delays until the authority
//! confirms the taxpayer. The schedule is a lane in the database, so it survives a crash.

use std::sync::Arc;
use std::time::Duration;

use authority_client::{Authority, AuthorityFailure, Entity};
use database::StoreError;
use jiff::{SignedDuration, Timestamp};
use timing::clock::SharedClock;

use crate::actors::dispatch::WorkStatus;
use crate::actors::taxpayer::commands::RecordVerification;
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::domain::party::verification::{ListedBusiness, UnverifiedReason, Verification};
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::lanes::Lease;
use crate::store::lanes::leases::{self, LaneRelease};

/// The maximum number of taxpayers that a process verifies concurrently.
pub const VERIFICATIONS_MAX: usize = 8;
/// The minimum and the maximum delay before a taxpayer is verified again.
const RETRY_DELAY_MIN: SignedDuration = SignedDuration::from_secs(5);
const RETRY_DELAY_MAX: SignedDuration = SignedDuration::from_hours(24);

#[derive(Clone)]
pub struct Verifier {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub authority: Authority,
    pub clock: SharedClock,
    /// The id of the authority's entity that lists the businesses of all taxpayers. If `None`, each taxpayer is an
    /// entity of its own, and its business id is the entity id.
    pub entity_id: Option<String>,
}

impl Verifier {
    /// Verifies the taxpayer of this lane, then releases the lane until the next attempt.
    pub async fn verify(&self, lease: &Lease) -> Result<WorkStatus, StoreError> {
        let taxpayer = match lease.key.parse() {
            Ok(id) => taxpayers::find_by_id(self.store.reader(), TaxpayerId(id)).await?,
            Err(_) => None,
        };
        let again = match taxpayer.filter(|taxpayer| !taxpayer.verification.is_verified()) {
            Some(taxpayer) => self.verify_now(&taxpayer).await,
            None => None,
        };
        let tx = self.store.begin().await?;
        leases::release(&tx, &[LaneRelease::new(lease, again)]).await?;
        tx.commit().await?;
        Ok(WorkStatus::Released)
    }

    /// Verifies a taxpayer. Returns the delay before the next attempt, or `None` if the taxpayer is verified now.
    async fn verify_now(&self, taxpayer: &Taxpayer) -> Option<Duration> {
        let id = self.entity_id.as_deref().unwrap_or(&taxpayer.business_id);
        let answer = self.authority.fetch_entity(id).await;
        let wait = answer
            .as_ref()
            .err()
            .and_then(AuthorityFailure::retry_after);
        let again = retry_delay(
            self.clock.now(),
            taxpayer.created_at,
            wait.unwrap_or_default(),
        );
        let Some(found) = interpret_answer(taxpayer, answer) else {
            return Some(again);
        };
        match self.record_result(taxpayer, found).await {
            Ok(recorded) if recorded.verification.is_verified() => None,
            Ok(_) => Some(again),
            Err(failure) => {
                tracing::warn!(taxpayer = taxpayer.id.0, %failure, "failed to record a verification; will retry");
                Some(again)
            }
        }
    }

    async fn record_result(
        &self,
        taxpayer: &Taxpayer,
        found: Verification,
    ) -> Result<Taxpayer, TaxpayerError> {
        let recorded = self
            .taxpayers
            .send(
                taxpayer.id,
                RecordVerification {
                    found,
                    by: None,
                    reason: None,
                },
            )
            .await?;
        if recorded.verification != taxpayer.verification && !recorded.verification.is_verified() {
            let reason = recorded.verification.reason();
            tracing::warn!(
                taxpayer = taxpayer.id.0,
                reason,
                "the authority does not confirm a taxpayer"
            );
        }
        Ok(recorded)
    }
}

/// Interprets the authority's answer. Returns `None` if the call was not made because of our own limits or breakers.
fn interpret_answer(
    taxpayer: &Taxpayer,
    answer: Result<Entity, AuthorityFailure>,
) -> Option<Verification> {
    match answer {
        Ok(entity) => {
            let listed = entity.businesses.iter();
            let listed = listed.map(|one| ListedBusiness {
                id: &one.id,
                tin: one.tin.as_deref(),
            });
            Some(Verification::compare(
                &taxpayer.business_id,
                &taxpayer.tin,
                listed,
            ))
        }
        Err(AuthorityFailure::NotFound { .. }) => {
            Some(Verification::Unverified(UnverifiedReason::BusinessUnknown))
        }
        Err(failure) => failure
            .counts_as_attempt()
            .then_some(Verification::Unverified(UnverifiedReason::NoAnswer)),
    }
}

/// Returns the delay before the next attempt: the time since onboarding, so that the delay about doubles with each
/// attempt, or the wait that the authority asks for, if it is longer. The delay is at least `RETRY_DELAY_MIN` and at
/// most `RETRY_DELAY_MAX`, because a response can ask for any wait.
fn retry_delay(now: Timestamp, since: Timestamp, requested_wait: Duration) -> Duration {
    let requested = SignedDuration::try_from(requested_wait).unwrap_or(RETRY_DELAY_MAX);
    now.duration_since(since)
        .max(requested)
        .clamp(RETRY_DELAY_MIN, RETRY_DELAY_MAX)
        .unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authority_is_asked_again_after_as_long_as_it_has_been() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        for (now, seconds) in [
            (0, 5),
            (7, 7),
            (600, 600),
            (86_400, 86_400),
            (1_000_000, 86_400),
            (-9, 5),
        ] {
            assert_eq!(
                retry_delay(at(now), at(0), Duration::ZERO),
                Duration::from_secs(seconds),
                "{now}"
            );
        }
    }

    #[test]
    fn the_authority_may_ask_for_a_longer_delay_of_at_most_a_day() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        for (requested, seconds) in [
            (0, 600),
            (30, 600),
            (3_600, 3_600),
            (86_400, 86_400),
            (31_536_000, 86_400),
            (u64::MAX, 86_400),
        ] {
            assert_eq!(
                retry_delay(at(600), at(0), Duration::from_secs(requested)),
                Duration::from_secs(seconds),
                "{requested}"
            );
        }
    }
}
