//! Dispatchers for lanes whose work is a plain function.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use futures_util::future::FutureExt;
use supervision::Tree;

use crate::actors::dispatch::{Assignment, Dispatcher, DispatcherConfig, WorkStatus, run_in_turn};
use crate::domain::kernel::crash::CrashHistory;
use crate::store::Store;
use crate::store::lanes::Lease;
use crate::store::lanes::leases::{self, LaneRelease, NextClaim};

impl Dispatcher {
    /// Creates a dispatcher that calls `work` with each claimed lane. After an error the lane is due again soon. After
    /// a panic the lane keeps its lease, and another claim takes it over when the lease has expired. The dispatcher is
    /// woken whenever work ends, because these kinds of lanes have few slots, and other lanes wait for a free one.
    pub fn for_work<W>(store: Store, config: DispatcherConfig, tree: &Tree, work: W) -> Self
    where
        W: AsyncFn(&Lease) -> Result<WorkStatus, StoreError> + Clone + Send + Sync + 'static,
    {
        let tree = tree.clone();
        let wake = Arc::clone(&config.wake);
        Self::new(store, config, move |Assignment { lease, turn }| {
            let work = work.clone();
            let tree = tree.clone();
            let wake = Arc::clone(&wake);
            async move {
                let worked = run_in_turn(turn, CrashHistory::default(), run_work(&work, &lease));
                let worked = AssertUnwindSafe(worked).catch_unwind().await;
                wake.notify_one();
                worked.unwrap_or_else(|_| {
                    tree.counters().panics.increment();
                    tracing::error!(
                        kind = lease.kind.as_str(),
                        lane = lease.key,
                        "work on a lane panicked"
                    );
                    WorkStatus::Released
                })
            }
            .boxed_local()
        })
    }
}

/// Releases the lane, which is then due again after `delay`. If `delay` is `None`, deletes the lane, because nothing is
/// left to do.
pub async fn release_lane(
    store: &Store,
    lease: &Lease,
    delay: Option<Duration>,
) -> Result<WorkStatus, StoreError> {
    let next_claim = match delay {
        Some(_) => NextClaim::Ordinary,
        None => NextClaim::Never,
    };
    let release = LaneRelease {
        next_claim,
        ..LaneRelease::new(lease, delay)
    };
    let tx = store.begin().await?;
    leases::release(&tx, &[release]).await?;
    tx.commit().await?;
    Ok(WorkStatus::Released)
}

async fn run_work<W>(work: &W, lease: &Lease) -> WorkStatus
where
    W: AsyncFn(&Lease) -> Result<WorkStatus, StoreError>,
{
    match work(lease).await {
        Ok(status) => status,
        // Another process has taken over the lane and its work.
        Err(StoreError::Stale) => WorkStatus::Released,
        Err(error) => {
            let kind = lease.kind.as_str();
            let lane = &lease.key;
            tracing::warn!(kind, lane, %error, "failed to work on a lane; will retry");
            WorkStatus::Unfinished
        }
    }
}

#[cfg(test)]
mod tests {
    use supervision::Arbiters;
    use timing::clock::MockClock;
    use tokio::sync::mpsc;
    use tokio::time::timeout;

    use super::*;
    use crate::actors::kinds;
    use crate::store::lanes::{self, LaneKind, LanesToWake};
    use crate::store::testing::stores;

    #[actix::test]
    async fn a_lane_waits_for_a_slot_no_longer_than_the_work_before_it_even_if_that_panics() {
        for test in stores().await {
            let tx = test.store.begin().await.unwrap();
            lanes::wake(
                &tx,
                LaneKind::Pull,
                &["1", "2"].map(str::to_owned),
                LanesToWake::All,
            )
            .await
            .unwrap();
            tx.commit().await.unwrap();
            let config = DispatcherConfig {
                kind: LaneKind::Pull,
                owner: "me".to_owned(),
                lease: Duration::from_secs(30),
                concurrency_max: 1,
                claim_max: 1,
                poll: Duration::from_mins(1),
                wake: Arc::default(),
            };
            let arbiters = Arbiters::start(1);
            let clock = MockClock::at(jiff::Timestamp::UNIX_EPOCH);
            let (tree, (seen, mut keys)) = (
                Tree::new(Arc::new(clock), kinds::ALL),
                mpsc::unbounded_channel(),
            );
            let dispatcher =
                Dispatcher::for_work(test.store.clone(), config, &tree, async move |lease| {
                    seen.send(lease.key.clone()).unwrap();
                    panic!("{}", lease.key)
                });
            let _address = dispatcher.start(&tree, &arbiters, kinds::INBOUND);
            let mut next = async || {
                timeout(Duration::from_secs(20), keys.recv())
                    .await
                    .unwrap()
                    .unwrap()
            };
            let mut worked_on = [next().await, next().await];
            worked_on.sort();
            assert_eq!(worked_on, ["1", "2"]);
            arbiters.stop();
            assert!(arbiters.join().await);
            assert_eq!(tree.counters().panics.get(), 2);
        }
    }
}
