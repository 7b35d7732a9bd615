//! Lanes that were under way when a process ended are taken up apart: one at a time in this process, whatever kind they
//! are of. Of two that were taken up together either might be what ends the next process, and both would be counted
//! for it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::actors::dispatch::{Dispatcher, Handled, POLL};
use crate::store::db::error::StoreError;
use crate::store::lanes::LeasedLane;
use crate::store::lanes::abandoned;
use crate::store::lanes::fair_queue::{ClaimRequest, FairShare, START};

/// How long one of them keeps the next waiting: what hangs must not hold up all others.
const APART: Duration = Duration::from_secs(2);

/// Counts the end of a process for what a lane was worked on. `More` says that the lane is to be worked on now.
pub(super) type OnCrash = Arc<dyn Fn(LeasedLane) -> LocalBoxFuture<'static, Handled> + Send + Sync>;

/// The turns in which the dispatchers of a process take up such lanes.
#[derive(Debug, Clone)]
pub struct Isolation(Arc<Semaphore>);

impl Default for Isolation {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Dispatcher {
    /// Counts the end of a process by this, before a lane that was under way then is worked on again.
    #[must_use]
    pub fn counting<F>(self, on_crash: F) -> Self
    where
        F: Fn(LeasedLane) -> LocalBoxFuture<'static, Handled> + Send + Sync + 'static,
    {
        Self { on_crash: Arc::new(on_crash), ..self }
    }

    /// Takes up lanes apart for as long as it is polled.
    pub(super) async fn take_up_apart(self) {
        loop {
            let has_taken = self.take_up_next().await.unwrap_or_else(|error| {
                let kind = self.duty.kind.as_str();
                tracing::warn!(kind, %error, "failed to take over lanes whose holder is gone; will retry");
                false
            });
            if !has_taken {
                sleep(POLL).await;
            }
        }
    }

    async fn take_up_next(&self) -> Result<bool, StoreError> {
        let turn = Arc::clone(&self.duty.isolation.0).acquire_owned().await;
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let (Ok(turn), Ok(slot)) = (turn, slot) else { return Ok(false) };
        let shut = (self.gates)();
        let (kind, owner, lease) = (self.duty.kind, self.duty.owner.as_str(), self.duty.lease);
        let share = FairShare::unlimited();
        let ask = ClaimRequest { kind, owner, lease, limit: 1, after: START, blocked: &shut, share };
        let Some(claimed) = abandoned::claim_one(&self.store, &ask).await? else { return Ok(false) };
        self.work_apart(claimed, slot, turn);
        Ok(true)
    }

    fn work_apart(&self, claimed: LeasedLane, slot: OwnedSemaphorePermit, turn: OwnedSemaphorePermit) {
        let hold = self.in_hand.take(&claimed.lease, None);
        let dispatcher = self.clone();
        actix_rt::spawn(async move {
            let _at_work = (hold, slot);
            let lease = claimed.lease.clone();
            let mut work = Box::pin(dispatcher.count_and_work(claimed));
            let ended = timeout(APART, &mut work).await;
            drop(turn);
            let handled = match ended {
                Ok(handled) => handled,
                Err(_) => work.await,
            };
            dispatcher.finish(&lease, handled).await;
        });
    }

    async fn count_and_work(&self, claimed: LeasedLane) -> Handled {
        let lease = claimed.lease.clone();
        if claimed.crashes > 0 {
            let counted = (self.on_crash)(claimed).await;
            if counted != Handled::More {
                return counted;
            }
        }
        (self.handoff)(lease).await
    }
}
