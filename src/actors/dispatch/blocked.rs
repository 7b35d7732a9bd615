//! The steps that are blocked, and their probes. While a probe is due, the step stays blocked, and one lane is claimed
//! whose work makes the probe. So a probe during an outage does not wake all the work that waits for the end of the
//! outage. When the step is no longer blocked, all of that work is due at once.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

use database::StoreError;

use crate::actors::dispatch::Dispatcher;
use crate::store::lanes::claim::ClaimedLane;
use crate::store::lanes::fair_queue::BlockedStep;
use crate::store::lanes::probe_claim::{self, DueProbe};
use crate::store::lanes::{self, WaitingLanes};

impl Dispatcher {
    /// Makes the dispatcher claim one lane for each of the probes that `due` returns at the time of the claim. Their
    /// steps must be among the blocked steps.
    #[must_use]
    pub fn with_due_probes(self, due: impl Fn() -> Vec<DueProbe> + Send + Sync + 'static) -> Self {
        Self {
            probes: self.probes.with_due_probes(Arc::new(due)),
            ..self
        }
    }

    /// Returns the blocked steps. When a step is no longer blocked, makes every lane that waits for it due now. If that
    /// fails, the steps count as blocked until the next call, which tries again.
    pub(super) async fn refresh_blocked_steps(&self) -> Result<Vec<BlockedStep>, StoreError> {
        let blocked = (self.list_blocked)();
        let previous = std::mem::replace(&mut *self.lock_blocked_steps(), blocked.clone());
        let unblocked: Vec<_> = previous
            .iter()
            .filter(|entry| entry.is_unblocked_for_any_taxpayer(&blocked))
            .map(|entry| entry.step)
            .collect();
        let waiting = WaitingLanes::For {
            kind: self.config.kind,
            steps: &unblocked,
            blocked: &blocked,
        };
        if !unblocked.is_empty()
            && let Err(error) = lanes::make_waiting_due(&self.store, waiting).await
        {
            // A statement that took too long is not tried again, because it would hold up all claims.
            if !error.is_timeout() {
                *self.lock_blocked_steps() = previous;
            }
            return Err(error);
        }
        Ok(blocked)
    }

    fn lock_blocked_steps(&self) -> MutexGuard<'_, Vec<BlockedStep>> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims one lane for each probe that is due, up to `limit`.
    pub(super) async fn claim_for_probes(
        &self,
        limit: usize,
    ) -> Result<Vec<ClaimedLane>, StoreError> {
        let now = Instant::now();
        let mut probes = self.probes.list_claimable(now);
        probes.truncate(limit);
        if probes.is_empty() {
            return Ok(Vec::new());
        }
        let request = self.claim_request(limit, &[]);
        let claimed = probe_claim::claim_probes(&self.store, &request, &probes).await?;
        self.probes
            .record_claims(&probes, &claimed.found_steps, now);
        Ok(claimed.lanes)
    }

    /// Returns the steps that block lanes whose lease has ended. Such lanes are few, so all of them that may make a due
    /// probe are let through. But a step that is blocked for all taxpayers stays blocked for all if its probe is
    /// limited to certain taxpayers or excludes an integrator.
    pub(super) fn list_steps_blocked_for_ended_leases(&self) -> Vec<BlockedStep> {
        let probes = self.probes.list_due();
        probe_claim::let_probes_through((self.list_blocked)(), &probes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use futures_util::FutureExt;
    use futures_util::future::pending;

    use super::*;
    use crate::actors::dispatch::{DirectDispatch, DispatcherConfig};
    use crate::store::lanes::{LaneKind, QueuedLane};
    use crate::store::testing::stores;

    /// The steps that are blocked, and the probes that are due.
    type Blockade = (Vec<BlockedStep>, Vec<DueProbe>);

    fn blockade(steps: &[&'static str], due: &[&'static str]) -> Blockade {
        let blocked = steps.iter().copied().map(|step| BlockedStep {
            step,
            taxpayers: None,
        });
        let probes = due.iter().copied().map(|step| DueProbe {
            step,
            taxpayers: None,
            except_taxpayers: Vec::new(),
            except_integrators: Vec::new(),
        });
        (blocked.collect(), probes.collect())
    }

    fn config() -> DispatcherConfig {
        DispatcherConfig {
            kind: LaneKind::Run,
            owner: "me".to_owned(),
            lease: Duration::from_secs(30),
            concurrency_max: 64,
            claim_max: 64,
            poll: Duration::from_mins(1),
            wake: Arc::default(),
        }
    }

    #[actix::test]
    async fn a_lane_that_is_queued_while_its_probe_is_due_makes_the_probe_at_once() {
        for test in stores().await {
            let direct = DirectDispatch::default();
            let dispatcher =
                Dispatcher::new(test.store.clone(), config(), |_| pending().boxed_local())
                    .with_direct_dispatch(&direct)
                    .with_blocked_steps(|| blockade(&["sign"], &[]).0)
                    .with_due_probes(|| blockade(&[], &["sign"]).1);
            let count = dispatcher.dispatch_due().await.unwrap();
            assert_eq!(count, 0, "there is no lane");
            let lane = QueuedLane {
                key: "7/sign".to_owned(),
                taxpayer_id: 7,
                deadline: 0,
                next_step: Some("sign"),
            };
            let tx = test.store.begin().await.unwrap();
            lanes::enqueue(&tx, LaneKind::Run, &[lane]).await.unwrap();
            tx.commit().await.unwrap();
            let count = dispatcher.dispatch_due().await.unwrap();
            assert_eq!(count, 0, "the search has a pause");
            direct.announce_blocked_lane("sign");
            assert_eq!(dispatcher.dispatch_due().await.unwrap(), 1);
        }
    }

    #[actix::test]
    async fn a_due_probe_wakes_one_lane_and_the_end_of_the_blockade_wakes_all() {
        for test in stores().await {
            let steps = ["sign", "sign", "sign", "send", "send", "confirm"];
            let lanes = (1..).zip(steps).map(|(taxpayer_id, step)| QueuedLane {
                key: format!("{taxpayer_id}/{step}"),
                taxpayer_id,
                deadline: 0,
                next_step: Some(step),
            });
            let tx = test.store.begin().await.unwrap();
            lanes::enqueue(&tx, LaneKind::Run, &lanes.collect::<Vec<_>>())
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let current = Arc::new(Mutex::new(Blockade::default()));
            let blocked = Arc::clone(&current);
            let due = Arc::clone(&current);
            let dispatcher =
                Dispatcher::new(test.store.clone(), config(), |_| pending().boxed_local())
                    .with_blocked_steps(move || blocked.lock().unwrap().0.clone())
                    .with_due_probes(move || due.lock().unwrap().1.clone());
            let both = ["sign", "send"];
            for (steps, due, claimed) in [
                (&both[..], &[][..], 1),
                (&both[..], &both[..], 2),
                (&["sign"][..], &[][..], 1),
                (&[][..], &[][..], 2),
            ] {
                *current.lock().unwrap() = blockade(steps, due);
                let count = dispatcher.dispatch_due().await.unwrap();
                assert_eq!(count, claimed, "{steps:?} {due:?}");
            }
        }
    }
}
