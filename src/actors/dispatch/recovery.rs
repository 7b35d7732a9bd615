//! Takes over the lanes of processes that crashed. The crash is counted for the work of each lane before the work
//! begins again. After the first crash concurrency does not change: as many lanes run at once as there are free slots,
//! shared between taxpayers as always. Work that was in flight at two crashes is left to `isolation`.

use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use futures_util::future::{FutureExt, LocalBoxFuture};
use tokio::time::sleep;

use crate::actors::dispatch::{Assignment, Dispatcher};
use crate::domain::kernel::crash::CrashHistory;
use crate::store::Store;
use crate::store::lanes::abandoned::LanesWithEndedLease;
use crate::store::lanes::claim::{self, ClaimableLanes, ClaimedLane};
use crate::store::lanes::leases::{self, LaneRelease, NextClaim};
use crate::store::lanes::{Lease, LeasedLane};

/// The maximum number of lanes that are taken over at once. It is small, because the lanes stay locked until their
/// crashes are counted, and a lock on an endpoint's lane delays the writes of its taxpayer.
const LANES_PER_TAKEOVER_MAX: usize = 32;

/// If crashes are counted for the whole lane, the lane waits `n * n` times this long after its crash number `n`, from
/// the second one on.
const CRASH_BACKOFF: Duration = Duration::from_secs(15);

/// A function that counts a crash for the work of each lane. It returns the leases of the lanes that are handed to
/// workers now. It has released the leases of the others, or has found them lost.
pub(super) type CountCrashes = Arc<
    dyn Fn(Vec<LeasedLane>) -> LocalBoxFuture<'static, Result<Vec<Lease>, StoreError>>
        + Send
        + Sync,
>;

/// Returns the function for the kinds whose crashes are counted for the whole lane. From the second crash on, the lane
/// waits, longer after each crash, and its work then begins alone.
pub(super) fn lane_crash_counter(store: Store) -> CountCrashes {
    Arc::new(move |crashed| count_lane_crashes(store.clone(), crashed).boxed_local())
}

async fn count_lane_crashes(
    store: Store,
    crashed: Vec<LeasedLane>,
) -> Result<Vec<Lease>, StoreError> {
    let tx = store.begin().await?;
    let mut going_on = Vec::new();
    let mut held_back = Vec::new();
    for LeasedLane { lease, crashes, .. } in crashed {
        let history = CrashHistory {
            crashes,
            ..CrashHistory::default()
        };
        if !history.must_run_alone() {
            going_on.push(lease);
            continue;
        }
        let wait = CRASH_BACKOFF.saturating_mul(crashes.saturating_mul(crashes));
        let next_claim = NextClaim::AloneAndCounted;
        held_back.push(LaneRelease {
            next_claim,
            ..LaneRelease::new(&lease, Some(wait))
        });
        if history.is_quarantined() {
            let kind = lease.kind.as_str();
            let lane = &lease.key;
            tracing::warn!(
                kind,
                lane,
                crashes,
                "processes crashed repeatedly on this work; it is held back"
            );
        }
    }
    leases::release(&tx, &held_back).await?;
    tx.commit().await?;
    Ok(going_on)
}

impl Dispatcher {
    /// Sets the function that counts a crash for lanes before they are run again.
    #[must_use]
    pub fn with_crash_counter<F>(self, count: F) -> Self
    where
        F: Fn(Vec<LeasedLane>) -> LocalBoxFuture<'static, Result<Vec<Lease>, StoreError>>
            + Send
            + Sync
            + 'static,
    {
        Self {
            record_crashes: Arc::new(count),
            ..self
        }
    }

    /// Takes abandoned lanes over in a loop, until this future is dropped.
    pub(super) async fn recover(self) {
        loop {
            let count = self.take_over_lanes().await.unwrap_or_else(|error| {
                let kind = self.config.kind.as_str();
                tracing::warn!(kind, %error, "failed to take over lanes whose holder is gone; will retry");
                0
            });
            if count == 0 {
                sleep(self.config.poll).await;
            }
        }
    }

    /// Claims abandoned lanes, counts the crash for each, and hands out those whose work may begin again now. Returns
    /// the number of claimed lanes.
    pub(super) async fn take_over_lanes(&self) -> Result<usize, StoreError> {
        let blocked = self.list_steps_blocked_for_ended_leases();
        let ask = self.claim_request(LANES_PER_TAKEOVER_MAX.min(self.config.claim_max), &blocked);
        if !LanesWithEndedLease::Abandoned
            .has_due(&self.store, &ask)
            .await?
        {
            return Ok(0);
        }
        // Waits for the first slot. Otherwise new work could take every slot that becomes free, and these lanes would
        // never get one.
        let Ok(mut slots) = Arc::clone(&self.slots).acquire_owned().await else {
            return Ok(0);
        };
        let more = self.slots.available_permits().min(ask.limit - 1);
        if let Ok(more) =
            Arc::clone(&self.slots).try_acquire_many_owned(u32::try_from(more).unwrap_or(0))
        {
            slots.merge(more);
        }
        let ask = self.claim_request(slots.num_permits(), &blocked);
        let claimed = claim::claim(
            &self.store,
            ClaimableLanes::Ended(LanesWithEndedLease::Abandoned),
            &ask,
        )
        .await?
        .lanes;
        let count = claimed.len();
        for ClaimedLane { taxpayer_id, lane } in self.count_crashes(claimed).await {
            self.hand_to_worker(
                Assignment::from(lane.lease),
                Some(taxpayer_id),
                slots.split(1),
            );
        }
        Ok(count)
    }

    /// Counts the crash for each lane whose holder crashed. Returns the lanes whose work may begin again now. For a
    /// lane whose holder lives, and only lost its lease, no crash is counted.
    async fn count_crashes(&self, claimed: Vec<ClaimedLane>) -> Vec<ClaimedLane> {
        let crashed: Vec<_> = claimed
            .iter()
            .filter(|one| is_crashed(one))
            .map(|one| one.lane.clone())
            .collect();
        if crashed.is_empty() {
            return claimed;
        }
        let going_on = match (self.record_crashes)(crashed.clone()).await {
            Ok(going_on) => going_on,
            // It is not known whether the commit has counted the crashes. The lanes are taken over again when these
            // leases end, and are then read with their present counts.
            Err(error @ StoreError::Unsettled) => {
                let kind = self.config.kind.as_str();
                tracing::warn!(kind, %error, "failed to count crashes; will retry");
                Vec::new()
            }
            // A single faulty lane makes the call fail for all lanes, so each lane is tried alone.
            Err(_) => self.count_crashes_one_by_one(crashed).await,
        };
        claimed
            .into_iter()
            .filter(|one| !is_crashed(one) || going_on.contains(&one.lane.lease))
            .collect()
    }

    /// Counts the crash for each lane in a transaction of its own. If that fails, the lane waits until its lease ends,
    /// because the crash must be counted before the work begins again.
    async fn count_crashes_one_by_one(&self, crashed: Vec<LeasedLane>) -> Vec<Lease> {
        let mut going_on = Vec::new();
        for lane in crashed {
            let kind = lane.lease.kind.as_str();
            let key = lane.lease.key.clone();
            match (self.record_crashes)(vec![lane]).await {
                Ok(leases) => going_on.extend(leases),
                Err(StoreError::Stale) => {}
                Err(error) => {
                    tracing::warn!(kind, lane = key, %error, "failed to count a crash; will retry");
                }
            }
        }
        going_on
    }
}

fn is_crashed(claimed: &ClaimedLane) -> bool {
    claimed.lane.crashes > 0
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::pending;
    use tokio::sync::mpsc;

    use super::*;
    use crate::actors::dispatch::DispatcherConfig;
    use crate::store::lanes::{self, LaneKind, QueuedLane};
    use crate::store::testing::stores;

    /// The kinds of lanes that count the crashes of their work themselves.
    const KINDS: [LaneKind; 7] = [
        LaneKind::Pull,
        LaneKind::Outage,
        LaneKind::Reconciliation,
        LaneKind::Verification,
        LaneKind::Import,
        LaneKind::Correction,
        LaneKind::Mail,
    ];
    const LANES: i64 = 3;

    /// Returns the dispatcher of another process, whose leases end at once, and a channel that receives its work.
    fn process(
        store: &Store,
        kind: LaneKind,
        owner: &str,
    ) -> (Dispatcher, mpsc::UnboundedReceiver<Assignment>) {
        let (seen, work) = mpsc::unbounded_channel();
        let config = DispatcherConfig {
            kind,
            owner: owner.to_owned(),
            lease: Duration::ZERO,
            concurrency_max: 8,
            claim_max: 8,
            poll: Duration::from_millis(250),
            wake: Arc::default(),
        };
        let dispatcher = Dispatcher::new(store.clone(), config, move |assignment| {
            seen.send(assignment).unwrap();
            pending().boxed_local()
        });
        (dispatcher, work)
    }

    /// Waits until the leases have ended, as after a crash of their holder.
    async fn crash() {
        sleep(Duration::from_millis(2)).await;
    }

    async fn make_due(store: &Store, kind: LaneKind) {
        let lane = |number: i64| QueuedLane {
            key: number.to_string(),
            taxpayer_id: number,
            deadline: number,
            next_step: None,
        };
        let tx = store.begin().await.unwrap();
        lanes::enqueue(&tx, kind, &(0..LANES).map(lane).collect::<Vec<_>>())
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    #[actix::test]
    async fn after_one_crash_all_lanes_run_at_once_and_after_two_one_by_one() {
        for test in stores().await {
            for kind in KINDS {
                let store = &test.store;
                let lanes = usize::try_from(LANES).unwrap();
                make_due(store, kind).await;
                let (first, _work) = process(store, kind, "first");
                assert_eq!(first.dispatch_due().await.unwrap(), lanes);
                crash().await;
                let (second, mut work) = process(store, kind, "second");
                assert_eq!(second.take_over_lanes().await.unwrap(), lanes);
                for _ in 0..LANES {
                    assert!(
                        work.try_recv().unwrap().turn.is_none(),
                        "{kind:?}: beside the others"
                    );
                }
                crash().await;
                let (third, mut work) = process(store, kind, "third");
                assert_eq!(third.take_over_lanes().await.unwrap(), lanes);
                assert!(
                    work.try_recv().is_err(),
                    "{kind:?}: each waits before it goes alone"
                );
                assert!(!third.claim_isolated().await.unwrap());
                make_due(store, kind).await;
                assert!(third.claim_isolated().await.unwrap());
                let alone = work.try_recv().unwrap();
                assert!(alone.turn.is_some(), "{kind:?}");
                assert!(
                    third.turns.take().now_or_never().is_none(),
                    "{kind:?}: the next waits for the turn"
                );
                let (other, _work) = process(store, LaneKind::Run, "third");
                assert!(
                    other.turns.take().now_or_never().is_some(),
                    "each kind has a turn of its own"
                );
                drop(alone);
                assert!(third.claim_isolated().await.unwrap());
                assert!(work.try_recv().unwrap().turn.is_some(), "{kind:?}");
            }
        }
    }

    #[actix::test]
    async fn crashes_that_may_be_counted_already_are_not_counted_again_at_once() {
        for test in stores().await {
            let store = &test.store;
            let lanes = usize::try_from(LANES).unwrap();
            for (kind, error, expected) in [
                (LaneKind::Pull, StoreError::Unsettled, 1),
                (LaneKind::Outage, StoreError::Locked, 1 + lanes),
            ] {
                make_due(store, kind).await;
                let (first, _work) = process(store, kind, "first");
                assert_eq!(first.dispatch_due().await.unwrap(), lanes);
                crash().await;
                let (second, mut work) = process(store, kind, "second");
                let calls = Arc::new(AtomicUsize::new(0));
                let counted = Arc::clone(&calls);
                let second = second.with_crash_counter(move |_| {
                    counted.fetch_add(1, Ordering::SeqCst);
                    let error = error.clone();
                    async move { Err::<Vec<Lease>, _>(error) }.boxed_local()
                });
                assert_eq!(second.take_over_lanes().await.unwrap(), lanes);
                assert_eq!(calls.load(Ordering::SeqCst), expected, "{kind:?}");
                assert!(work.try_recv().is_err(), "{kind:?}: nothing begins");
            }
        }
    }

    #[actix::test]
    async fn work_that_ends_clears_its_count() {
        for test in stores().await {
            let store = &test.store;
            let kind = LaneKind::Pull;
            make_due(store, kind).await;
            let (first, _work) = process(store, kind, "first");
            first.dispatch_due().await.unwrap();
            for owner in ["second", "third"] {
                crash().await;
                let (next, mut work) = process(store, kind, owner);
                assert_eq!(
                    next.take_over_lanes().await.unwrap(),
                    usize::try_from(LANES).unwrap()
                );
                let tx = store.begin().await.unwrap();
                while let Ok(Assignment { lease, .. }) = work.try_recv() {
                    leases::release(&tx, &[LaneRelease::new(&lease, Some(Duration::ZERO))])
                        .await
                        .unwrap();
                }
                tx.commit().await.unwrap();
                next.dispatch_due().await.unwrap();
            }
            crash().await;
            let (last, mut work) = process(store, kind, "last");
            last.take_over_lanes().await.unwrap();
            assert!(
                work.try_recv().is_ok(),
                "it was not in flight at two crashes in a row"
            );
        }
    }
}
