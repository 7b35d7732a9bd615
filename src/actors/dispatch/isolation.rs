//! Runs lanes that were active when a process ended in isolation: this process runs only one such lane at a time,
//! across all lane kinds. If two of them ran together and the process ended again, the crash would be counted for both,
//! although only one of them caused it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::actors::dispatch::{Dispatcher, WorkStatus};
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::LeasedLane;
use crate::store::lanes::abandoned;
use crate::store::lanes::fair_queue::{ClaimRequest, FairShare, START};

/// The next isolated lane starts after this time even if the current one is still running, so that a lane that hangs
/// does not hold up all others.
const ISOLATED_MAX: Duration = Duration::from_secs(2);

/// A function that counts a crash for the work of a lane. The lane is then run only if the function returns `More`.
pub(super) type OnCrash = Arc<dyn Fn(LeasedLane) -> LocalBoxFuture<'static, WorkStatus> + Send + Sync>;

/// Postpones the next claim of a lane whose holders crashed, in case its work crashes this process too. If that fails,
/// the lane waits until its lease expires.
pub(super) async fn postpone(store: Store, crashed: LeasedLane) -> WorkStatus {
    match abandoned::postpone(&store, &crashed).await {
        Ok(()) => WorkStatus::More,
        Err(error) => {
            tracing::warn!(lane = crashed.lease.key, %error, "failed to postpone a lane after a crash; will retry");
            WorkStatus::Released
        }
    }
}

/// Makes the isolated lanes of all dispatchers of a process run one after the other.
#[derive(Debug, Clone)]
pub struct Isolation(Arc<Semaphore>);

impl Default for Isolation {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Dispatcher {
    /// Sets the function that counts a crash for a lane before that lane is run again.
    #[must_use]
    pub fn with_crash_counter<F>(self, on_crash: F) -> Self
    where
        F: Fn(LeasedLane) -> LocalBoxFuture<'static, WorkStatus> + Send + Sync + 'static,
    {
        Self { on_crash: Arc::new(on_crash), ..self }
    }

    /// Claims and runs isolated lanes in a loop, until this future is dropped.
    pub(super) async fn run_isolated(self) {
        loop {
            let has_taken = self.claim_isolated().await.unwrap_or_else(|error| {
                let kind = self.config.kind.as_str();
                tracing::warn!(kind, %error, "failed to take over lanes whose holder is gone; will retry");
                false
            });
            if !has_taken {
                sleep(self.config.poll).await;
            }
        }
    }

    async fn claim_isolated(&self) -> Result<bool, StoreError> {
        let blocked = (self.list_blocked)();
        let (kind, owner, lease) = (self.config.kind, self.config.owner.as_str(), self.config.lease);
        let share = FairShare::unlimited();
        let ask = ClaimRequest { kind, owner, lease, limit: 1, after: START, blocked: &blocked, share };
        if abandoned::find_one(&self.store, &ask).await?.is_none() {
            return Ok(false);
        }
        // The slot is acquired first, so that a dispatcher whose slots are all taken does not hold up the others.
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let turn = Arc::clone(&self.config.isolation.0).acquire_owned().await;
        let (Ok(slot), Ok(turn)) = (slot, turn) else { return Ok(false) };
        let Some(claimed) = abandoned::claim_one(&self.store, &ask).await? else { return Ok(false) };
        self.work_isolated(claimed, slot, turn);
        Ok(true)
    }

    fn work_isolated(&self, claimed: LeasedLane, slot: OwnedSemaphorePermit, turn: OwnedSemaphorePermit) {
        let hold = self.active_leases.take(&claimed.lease, None);
        let dispatcher = self.clone();
        actix_rt::spawn(async move {
            let _at_work = (hold, slot);
            let lease = claimed.lease.clone();
            let mut work = Box::pin(dispatcher.count_and_work(claimed));
            let ended = timeout(ISOLATED_MAX, &mut work).await;
            drop(turn);
            let handled = match ended {
                Ok(handled) => handled,
                Err(_) => work.await,
            };
            dispatcher.finish(&lease, handled).await;
        });
    }

    async fn count_and_work(&self, claimed: LeasedLane) -> WorkStatus {
        let lease = claimed.lease.clone();
        if claimed.crashes > 0 {
            let counted = (self.on_crash)(claimed).await;
            if counted != WorkStatus::More {
                return counted;
            }
        }
        (self.handoff)(lease).await
    }
}
