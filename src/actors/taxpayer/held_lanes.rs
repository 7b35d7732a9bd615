//! Waits for lanes that other transactions have locked. A waiter holds no database connection: a lock may be held for
//! seconds, and many waiters would use up the connections of all taxpayers. One short query checks the lanes of all
//! waiters at once.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use database::StoreError;
use tokio::time::sleep;

use crate::store::Store;
use crate::store::lanes::{self, LaneName};

const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(super) struct HeldLanes {
    store: Store,
    /// The lanes that somebody waits for, each with the number of waiters.
    wanted: Mutex<HashMap<LaneName, usize>>,
    last_check: tokio::sync::Mutex<Option<LaneCheck>>,
}

/// A check of all wanted lanes: when it began, and which lanes were locked.
struct LaneCheck {
    begun: Instant,
    held: HashSet<LaneName>,
}

/// One waiter for these lanes. It is counted in `HeldLanes::wanted` until it is dropped.
struct CountedWaiter<'a> {
    all: &'a HeldLanes,
    lanes: &'a [LaneName],
}

impl HeldLanes {
    pub(super) fn new(store: Store) -> Self {
        Self {
            store,
            wanted: Mutex::default(),
            last_check: tokio::sync::Mutex::default(),
        }
    }

    /// Waits until no transaction has locked any of these lanes. Fails with `Locked` if one of them is still locked at
    /// `deadline`.
    pub(super) async fn wait_until_free(
        &self,
        lanes: &[LaneName],
        deadline: Instant,
    ) -> Result<(), StoreError> {
        let wanted = CountedWaiter::new(self, lanes);
        loop {
            if Instant::now() >= deadline {
                return Err(StoreError::Locked);
            }
            // A check is reused only while it is younger than this sleep. So the check that is used next includes the
            // lanes of this waiter.
            sleep(LOOK_EVERY).await;
            if self.are_free(wanted.lanes).await? {
                return Ok(());
            }
        }
    }

    async fn are_free(&self, lanes: &[LaneName]) -> Result<bool, StoreError> {
        let mut last = self.last_check.lock().await;
        if last
            .as_ref()
            .is_none_or(|look| look.begun.elapsed() >= LOOK_EVERY)
        {
            let begun = Instant::now();
            let wanted: Vec<_> = self.lock_wanted().keys().cloned().collect();
            *last = Some(LaneCheck {
                begun,
                held: self.find_locked(&wanted).await?,
            });
        }
        Ok(last
            .as_ref()
            .is_some_and(|look| !lanes.iter().any(|lane| look.held.contains(lane))))
    }

    /// Returns the wanted lanes that another transaction has locked. The other lanes are locked only during this call.
    async fn find_locked(&self, wanted: &[LaneName]) -> Result<HashSet<LaneName>, StoreError> {
        let tx = self.store.begin().await?;
        let held = lanes::lock_keeping_versions(&tx, wanted).await?;
        tx.rollback().await?;
        Ok(held)
    }

    fn lock_wanted(&self) -> MutexGuard<'_, HashMap<LaneName, usize>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> CountedWaiter<'a> {
    fn new(all: &'a HeldLanes, lanes: &'a [LaneName]) -> Self {
        let mut wanted = all.lock_wanted();
        for lane in lanes {
            *wanted.entry(lane.clone()).or_default() += 1;
        }
        Self { all, lanes }
    }
}

impl Drop for CountedWaiter<'_> {
    fn drop(&mut self) {
        let mut wanted = self.all.lock_wanted();
        for lane in self.lanes {
            let is_last = wanted.get_mut(lane).is_none_or(|waiters| {
                *waiters -= 1;
                *waiters == 0
            });
            if is_last {
                wanted.remove(lane);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lanes::{IfLocked, LaneKind, LanesToWake};
    use crate::store::testing::stores;

    /// More lanes than there are connections for transactions.
    const LANES: usize = 24;

    #[tokio::test]
    async fn many_wait_for_lanes_without_a_connection_and_each_until_its_own_is_free() {
        // PostgreSQL only: on SQLite nobody else can hold a lane.
        for test in stores().await.into_iter().skip(1) {
            let store = &test.store;
            let keys: Vec<_> = (0..LANES).map(|number| number.to_string()).collect();
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Taxpayer, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let holder = store.begin().await.unwrap();
            for key in &keys {
                lanes::lock(
                    &holder,
                    &[LaneName::new(LaneKind::Taxpayer, key)],
                    IfLocked::Await,
                )
                .await
                .unwrap();
            }
            let held_lanes = HeldLanes::new(store.clone());
            let names: Vec<_> = keys
                .into_iter()
                .map(|key| {
                    [LaneName {
                        kind: LaneKind::Taxpayer,
                        key,
                    }]
                })
                .collect();
            let soon = Instant::now() + Duration::from_millis(100);
            let waits = names
                .iter()
                .map(|lane| held_lanes.wait_until_free(lane, soon));
            let results = futures_util::future::join_all(waits).await;
            assert!(
                results
                    .iter()
                    .all(|result| matches!(result, Err(StoreError::Locked))),
                "{results:?}"
            );
            assert!(held_lanes.lock_wanted().is_empty());

            let late = Instant::now() + Duration::from_mins(1);
            let waits = futures_util::future::join_all(
                names
                    .iter()
                    .map(|lane| held_lanes.wait_until_free(lane, late)),
            );
            let (results, ()) = tokio::join!(waits, async {
                let writes = (0..LANES).map(|number| async move {
                    let tx = store.begin().await.unwrap();
                    lanes::lock(
                        &tx,
                        &[LaneName::new(LaneKind::Endpoint, number.to_string())],
                        IfLocked::Await,
                    )
                    .await
                    .unwrap();
                    tx.commit().await.unwrap();
                });
                futures_util::future::join_all(writes).await;
                holder.rollback().await.unwrap();
            });
            assert!(results.iter().all(Result::is_ok), "{results:?}");
        }
    }
}
