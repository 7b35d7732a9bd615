//! Finds deliveries that crash the process. An endpoint has many in flight, so the first crash is counted for each that
//! may have been. From then on each is delivered in isolation and recorded before its attempt. If the process crashes
//! again, the recorded delivery becomes a dead letter.

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

/// The deliveries in flight at a crash were the longest due, except those that waited for an earlier one of their IRN.
/// So this multiple of the longest due deliveries is counted.
const MARGIN: usize = 2;

impl DeliveryDeps {
    /// Counts a crash for the deliveries of an endpoint. If that fails, the lane waits for the end of its lease, because
    /// nothing may be delivered uncounted.
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

    /// Records the isolated delivery of an endpoint.
    pub(super) async fn record_isolated(&self, lease: &Lease, delivery: Uuid) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        abandoned::set_working_on(&tx, lease, Some(&delivery.to_string())).await?;
        tx.commit().await
    }
}
