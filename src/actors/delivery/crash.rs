//! Finds deliveries that crash the process. An endpoint may have many deliveries in flight, so the first crash is
//! counted for every delivery that may have been in flight. From then on each of them is delivered alone, and its id is
//! stored in the lane before the attempt. If the process crashes again, the delivery whose id is stored becomes a dead
//! letter.

use uuid::Uuid;

use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::actors::delivery::in_flight::max_held;
use crate::actors::dispatch::WorkStatus;
use crate::actors::incidents::DeathCause;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::db::error::StoreError;
use crate::store::lanes::abandoned;
use crate::store::lanes::{self, Lease, LeasedLane};
use crate::store::webhooks::crashed_deliveries;

/// After a crash it is not known which deliveries were in flight. So the crash is counted for the deliveries that have
/// been due for the longest time. Some of these were not in flight, because they waited for an earlier delivery of the
/// same IRN. To reach all deliveries that were in flight, up to this many times the maximum number in flight are
/// counted.
const MARGIN: usize = 2;

impl DeliveryDeps {
    /// Counts a crash for the deliveries of an endpoint that may have been in flight. If counting fails, nothing is
    /// delivered until the lease expires, because a delivery must not start before its crash is counted.
    pub(super) async fn count_crash(&self, crashed: &LeasedLane) -> WorkStatus {
        match self.counted(crashed).await {
            Ok(()) => WorkStatus::More,
            Err(StoreError::Stale) => WorkStatus::Released,
            Err(error) => {
                let lane = &crashed.lease.key;
                tracing::warn!(lane, %error, "failed to count a crash; will retry");
                WorkStatus::Released
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
            let failure = "the process crashed twice during its attempt";
            self.incidents.dead_letter(&delivery, kind, DeathCause::Quarantined, failure);
        }
        Ok(())
    }

    /// Stores in the endpoint's lane which delivery is about to be attempted alone.
    pub(super) async fn record_isolated(&self, lease: &Lease, delivery: Uuid) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        abandoned::set_working_on(&tx, lease, Some(&delivery.to_string())).await?;
        tx.commit().await
    }
}
