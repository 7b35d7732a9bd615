//! Direct dispatch of runs: the transaction that makes a run due also leases its lane, if a slot of the pipeline is
//! free. The other due runs wait until the dispatcher claims them.

use std::collections::HashMap;

use database::{StoreError, Transaction};

use crate::actors::dispatch::{DirectDispatch, ReservedSlot};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::pipeline::{Run, Step, run_lane_key};
use crate::store::lanes::{LaneKind, Lease, claim};

/// A run that this process has leased, with the worker slot that is reserved for it.
pub(super) struct LeasedRun<'a> {
    lease: Lease,
    taxpayer: i64,
    slot: ReservedSlot<'a>,
}

impl LeasedRun<'_> {
    /// Starts the run. Call this after the lease is committed.
    pub(super) fn hand_over(self) {
        self.slot.hand_over(self.lease, Some(self.taxpayer));
    }
}

/// Leases as many of the due runs as there are free slots. Call this after the runs were written, because that locks
/// their lanes.
pub(super) async fn lease_due_runs<'a>(
    direct: &'a DirectDispatch,
    tx: &Transaction,
    units: &[UnitOfWork],
) -> Result<Vec<LeasedRun<'a>>, StoreError> {
    let due = units.iter().flat_map(UnitOfWork::due_runs);
    let mut slots = HashMap::new();
    for run in due.filter(|run| may_start_at_once(direct, run)) {
        let Some(slot) = direct.reserve_slot() else {
            break;
        };
        let taxpayer = run.taxpayer_id;
        slots.insert(run_lane_key(taxpayer, run.id), (taxpayer.0, slot));
    }
    let Some((_, slot)) = slots.values().next() else {
        return Ok(Vec::new());
    };
    let keys: Vec<_> = slots.keys().cloned().collect();
    let leases = claim::claim_idle(
        tx,
        LaneKind::Run,
        &keys,
        slot.owner(),
        slot.lease_duration(),
    )
    .await?;
    let started = leases.into_iter().filter_map(|lease| {
        let (taxpayer, slot) = slots.remove(&lease.key)?;
        Some(LeasedRun {
            lease,
            taxpayer,
            slot,
        })
    });
    Ok(started.collect())
}

/// Tells the dispatcher of the due runs whose next steps are blocked, because they may make a probe. Call this after the
/// commit.
pub(super) fn announce_blocked_runs(direct: &DirectDispatch, units: &[UnitOfWork]) {
    for run in units.iter().flat_map(UnitOfWork::due_runs) {
        let step = run.next_step().map(Step::as_str);
        if let Some(step) = step.filter(|step| direct.is_blocked(step, run.taxpayer_id.0)) {
            direct.announce_blocked_lane(step);
        }
    }
}

/// True if the run may start at once. A run whose next step is blocked, or that was in flight at two crashes, is left
/// to the dispatcher.
fn may_start_at_once(direct: &DirectDispatch, run: &Run) -> bool {
    let taxpayer = run.taxpayer_id.0;
    !run.must_run_alone()
        && run
            .next_step()
            .is_some_and(|step| !direct.is_blocked(step.as_str(), taxpayer))
}
