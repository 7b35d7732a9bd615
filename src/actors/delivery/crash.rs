//! Finds deliveries that crash the process. An endpoint may have many deliveries in flight, so the first crash is
//! counted for every delivery that may have been in flight. From then on, the id of each of them is stored in the
//! endpoint's lane before its attempt starts, so that a second crash is counted exactly. A delivery that was in flight
//! at two crashes must run alone: nothing else of its endpoint is in flight meanwhile. A third crash makes it a dead
//! letter.

use std::collections::HashSet;

use database::StoreError;
use uuid::Uuid;

use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::in_flight::max_in_flight;
use crate::actors::incidents::DeadLetterCause;
use crate::domain::kernel::ids::EndpointKey;
use crate::store::lanes::leases::{self, LaneNote};
use crate::store::lanes::{IfLocked, Lease, LeasedLane};
use crate::store::webhooks::crashed_deliveries::{self, InterruptedEndpoint};

/// After the first crash nobody knows which deliveries were in flight, so the crash is counted for those that have been
/// due for the longest time: for up to this many times the maximum number in flight. The factor is needed because some
/// of them only waited for an earlier delivery of the same IRN.
const CRASH_COUNT_FACTOR: usize = 2;

impl DeliveryDeps {
    /// Counts a crash for each delivery that was, or may have been, in flight in these lanes, each of which is the lane
    /// of one endpoint. Returns the leases that are still held: the deliveries to their endpoints may start again. If a
    /// lease is lost, nothing is counted for its lane.
    pub(super) async fn record_crashes(
        &self,
        crashed: &[LeasedLane],
    ) -> Result<Vec<Lease>, StoreError> {
        let tx = self.store.begin().await?;
        let now = self.clock.now();
        let leases: Vec<_> = crashed.iter().map(|lane| lane.lease.clone()).collect();
        let held = leases::fence(&tx, &leases, IfLocked::Await).await?.held;
        let endpoints: Vec<_> = crashed
            .iter()
            .filter(|lane| held.contains(&lane.lease))
            .filter_map(|lane| self.crashed_endpoint(lane))
            .collect();
        let dead = crashed_deliveries::count_crash(&tx, &endpoints, now).await?;
        for lease in &held {
            leases::write_note(&tx, lease, LaneNote::CrashesCounted).await?;
        }
        tx.commit().await?;
        let failure = "the process crashed three times during its attempts";
        for (delivery, kind) in dead {
            self.incidents.record_dead_letter(
                &delivery,
                kind,
                DeadLetterCause::Quarantined,
                failure,
            );
        }
        Ok(leases
            .into_iter()
            .filter(|lease| held.contains(lease))
            .collect())
    }

    fn crashed_endpoint(&self, lane: &LeasedLane) -> Option<InterruptedEndpoint> {
        let recorded = lane.working_on.as_deref().unwrap_or_default();
        Some(InterruptedEndpoint {
            key: EndpointKey(lane.lease.key.parse().ok()?),
            recorded: recorded.split_whitespace().map(str::to_owned).collect(),
            others_max: max_in_flight(self.max_concurrent).saturating_mul(CRASH_COUNT_FACTOR),
        })
    }

    /// Stores the ids of `deliveries` in the endpoint's row in the table `lanes`. These deliveries were in flight at an
    /// earlier crash, and now are in flight again or are about to start.
    pub(super) async fn record_deliveries_in_flight(
        &self,
        lease: &Lease,
        deliveries: &HashSet<Uuid>,
    ) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        let recorded = to_in_flight_text(deliveries);
        leases::write_note(&tx, lease, LaneNote::WorkingOn(recorded.as_deref())).await?;
        tx.commit().await
    }
}

/// Returns the ids of these deliveries as the text that a lane stores; `None` if there are none.
pub(super) fn to_in_flight_text(deliveries: &HashSet<Uuid>) -> Option<String> {
    let ids: Vec<_> = deliveries.iter().map(Uuid::to_string).collect();
    (!ids.is_empty()).then(|| ids.join(" "))
}
