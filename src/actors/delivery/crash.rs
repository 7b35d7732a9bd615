//! Deliveries that were under way when a process ended. An endpoint has many at once, so the first end is counted for
//! each that may have been: from then on it goes alone, written down before it begins. If the process ends again, it was
//! the one, and is put aside as a dead letter.

use uuid::Uuid;

use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::actors::delivery::in_flight::max_held;
use crate::actors::dispatch::Handled;
use crate::actors::incidents::DeathCause;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::db::error::StoreError;
use crate::store::lanes::abandoned;
use crate::store::lanes::{self, Lease, LeasedLane};
use crate::store::webhooks::crashed_deliveries;

/// Deliveries that were held when the process ended have been due for longest, but for those that an ended one of
/// their IRN had kept waiting: so many times as many are counted.
const MARGIN: usize = 2;

impl DeliveryDeps {
    /// Counts the end of a process for the deliveries of an endpoint. One whose crash could not be counted waits for
    /// the end of its lease: nothing must be delivered uncounted.
    pub(super) async fn count_crash(&self, crashed: &LeasedLane) -> Handled {
        match self.counted(crashed).await {
            Ok(()) => Handled::More,
            Err(StoreError::Stale) => Handled::Released,
            Err(error) => {
                let lane = &crashed.lease.key;
                tracing::warn!(lane, %error, "failed to count the end of a process; will retry");
                Handled::Released
            }
        }
    }

    async fn counted(&self, crashed: &LeasedLane) -> Result<(), StoreError> {
        let LeasedLane { lease, working_on, .. } = crashed;
        let Ok(taxpayer) = lease.key.parse().map(TaxpayerId) else { return Ok(()) };
        let (tx, now) = (self.store.begin().await?, self.clock.now());
        lanes::fence(&tx, lease).await?;
        let limit = max_held(self.max_concurrent).saturating_mul(MARGIN);
        let alone = working_on.as_deref();
        let dead = crashed_deliveries::count_crash(&tx, taxpayer, alone, limit, now).await?;
        abandoned::reset_crashes(&tx, lease).await?;
        tx.commit().await?;
        if let Some((delivery, kind)) = dead {
            let why = (DeathCause::Quarantined, "the process ended twice while it was under way");
            self.incidents.dead_letter(&delivery, kind, why);
        }
        Ok(())
    }

    /// Writes down which delivery an endpoint is worked on alone.
    pub(super) async fn record_isolated(&self, lease: &Lease, delivery: Uuid) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        abandoned::set_working_on(&tx, lease, Some(&delivery.to_string())).await?;
        tx.commit().await
    }
}
