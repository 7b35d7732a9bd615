//! Direct dispatch: a lane is leased in the same transaction that creates its work, so its worker starts right after
//! the commit, without a claim. A worker slot is reserved before the transaction. If no slot is free, the lane waits
//! until the dispatcher claims it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::actors::dispatch::probe_claims::BlockedLaneTimes;
use crate::store::lanes::Lease;
use crate::store::lanes::fair_queue::BlockedStep;

/// The steps that were blocked at the last claim.
pub(super) type BlockedSteps = Arc<Mutex<Vec<BlockedStep>>>;

/// Direct dispatch leaves a quarter of the slots free for lanes that the dispatcher claims. Otherwise new work could
/// take all slots, and lanes that are already due would wait.
const DUE_SHARE_DIVISOR: usize = 4;

/// Receives directly dispatched lanes, each with its reserved slot.
pub(crate) type DirectLanes = mpsc::UnboundedReceiver<DirectLane>;

/// A lane that was leased for a dispatcher.
#[derive(Debug)]
pub(crate) struct DirectLane {
    pub(crate) lease: Lease,
    /// The taxpayer among whose active lanes this lane counts; `None` if it counts for no taxpayer.
    pub(crate) taxpayer: Option<i64>,
    pub(crate) slot: OwnedSemaphorePermit,
}

/// Sends leased lanes to the dispatcher. No slot can be reserved before the dispatcher has called `connect_dispatcher`.
#[derive(Debug, Clone, Default)]
pub struct DirectDispatch {
    connection: Arc<OnceLock<DispatcherConnection>>,
    blocked_lane_times: BlockedLaneTimes,
}

#[derive(Debug)]
struct DispatcherConnection {
    owner: String,
    lease: Duration,
    slots: Arc<Semaphore>,
    slots_max: usize,
    blocked: BlockedSteps,
    lanes: mpsc::UnboundedSender<DirectLane>,
}

/// A worker slot that is reserved for one lane.
#[derive(Debug)]
pub struct ReservedSlot<'a> {
    connection: &'a DispatcherConnection,
    slot: OwnedSemaphorePermit,
}

impl DirectDispatch {
    /// Connects a dispatcher with its owner name, lease duration and slots. Returns the channel on which the dispatcher
    /// receives lanes. All slots must be free.
    pub(crate) fn connect_dispatcher(
        &self,
        owner: &str,
        lease: Duration,
        slots: &Arc<Semaphore>,
        blocked: &BlockedSteps,
    ) -> DirectLanes {
        let (sender, receiver) = mpsc::unbounded_channel();
        let owner = owner.to_owned();
        let slots = Arc::clone(slots);
        let blocked = Arc::clone(blocked);
        // Only the first dispatcher is connected; a second one would receive no lanes. There is no second one, because
        // each lane kind has only one dispatcher.
        let _ = self.connection.set(DispatcherConnection {
            owner,
            lease,
            slots_max: slots.available_permits(),
            slots,
            blocked,
            lanes: sender,
        });
        receiver
    }

    /// True if the step was blocked for the taxpayer at the dispatcher's last claim.
    pub fn is_blocked(&self, step: &str, taxpayer: i64) -> bool {
        let Some(connection) = self.connection.get() else {
            return false;
        };
        let blocked = connection.blocked.lock();
        let blocked = blocked.unwrap_or_else(PoisonError::into_inner);
        blocked.iter().any(|entry| entry.blocks(step, taxpayer))
    }

    /// Tells the dispatcher that a lane was queued whose next step is blocked. If a probe of this step is due, the lane
    /// may make it, so the dispatcher does not wait for its next regular search. Call this after the commit.
    pub fn announce_blocked_lane(&self, step: &'static str) {
        self.blocked_lane_times.record(step, Instant::now());
    }

    /// Returns the times that `announce_blocked_lane` records.
    pub(super) fn blocked_lane_times(&self) -> BlockedLaneTimes {
        self.blocked_lane_times.clone()
    }

    /// Reserves a worker slot. Returns `None` if too few slots are free or no dispatcher is connected.
    pub fn reserve_slot(&self) -> Option<ReservedSlot<'_>> {
        let connection = self.connection.get()?;
        if connection.slots.available_permits() <= connection.slots_max / DUE_SHARE_DIVISOR {
            return None;
        }
        let slot = Arc::clone(&connection.slots).try_acquire_owned().ok()?;
        Some(ReservedSlot { connection, slot })
    }
}

impl ReservedSlot<'_> {
    /// Returns the id under which this process leases the lane.
    pub fn owner(&self) -> &str {
        &self.connection.owner
    }

    /// Returns the duration of the lease of the lane.
    pub fn lease_duration(&self) -> Duration {
        self.connection.lease
    }

    /// Sends a lane to the dispatcher. Call this after the lane's lease is committed. If the dispatcher no longer runs,
    /// the lease is not renewed and expires, and the lane is claimed again.
    pub fn hand_over(self, lease: Lease, taxpayer: Option<i64>) {
        let _ = self.connection.lanes.send(DirectLane {
            lease,
            taxpayer,
            slot: self.slot,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lanes::LaneKind;

    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_slot_is_reserved_until_it_is_dropped_and_some_are_left_to_claimed_lanes() {
        let direct = DirectDispatch::default();
        let slots = Arc::new(Semaphore::new(8));
        let blocked = BlockedSteps::default();
        assert!(
            direct.reserve_slot().is_none() && !direct.is_blocked("sign", 7),
            "no dispatcher is connected"
        );
        let mut arrivals = direct.connect_dispatcher("me", LEASE, &slots, &blocked);
        let mut reserved_slots: Vec<_> = std::iter::from_fn(|| direct.reserve_slot()).collect();
        assert_eq!((reserved_slots.len(), slots.available_permits()), (6, 2));
        blocked.lock().unwrap().push(BlockedStep {
            step: "sign",
            taxpayers: Some(vec![7]),
        });
        let asked = [("sign", 7), ("sign", 8), ("send", 7)];
        assert_eq!(
            asked.map(|(step, taxpayer)| direct.is_blocked(step, taxpayer)),
            [true, false, false]
        );
        let reserved_slot = reserved_slots.pop().unwrap();
        assert_eq!(
            (reserved_slot.owner(), reserved_slot.lease_duration()),
            ("me", LEASE)
        );
        reserved_slot.hand_over(
            Lease {
                kind: LaneKind::Endpoint,
                key: "7".into(),
                epoch: 1,
            },
            None,
        );
        drop(reserved_slots);
        assert_eq!(slots.available_permits(), 7, "one is on its way");
        let DirectLane { lease, slot, .. } = arrivals.recv().await.unwrap();
        assert_eq!(lease.key, "7");
        drop(slot);
        assert_eq!(slots.available_permits(), 8);
    }
}
