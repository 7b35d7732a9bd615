//! The end of a transaction: writes all changes, commits, and wakes whoever has new work or waits for
//! a change.

use database::{StoreError, Transaction};
use timing::trace::Span;

use crate::actors::dispatch::ReservedSlot;
use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::commit_lookup::resolve_commit;
use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::direct_runs::{self, StartedRun};
use crate::actors::taxpayer::flush::{WakeResult, write_all};
use crate::actors::taxpayer::member::{Member, traces};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::kernel::ids::EndpointKey;

/// Writes all changes and commits. Returns the cached state of each member after the transaction.
pub(super) async fn write_and_commit(
    deps: &TaxpayerDeps,
    tx: Transaction,
    members: &[Member<'_>],
    units: Vec<UnitOfWork>,
) -> Result<Vec<CachedState>, StoreError> {
    if !units.iter().any(UnitOfWork::has_changes) {
        tx.rollback().await?;
        // The rollback also restored the lanes' versions, so the cached states get the previous versions.
        return Ok(units
            .into_iter()
            .map(|unit| unit.into_cached().before_lock())
            .collect());
    }
    let commands = members.iter().flat_map(|member| traces(member.tasks));
    let spans = Span::begin_in_each(commands, "commit");
    let wanted = units.iter().map(|unit| unit.woken_endpoints().len()).sum();
    let slots: Vec<_> = std::iter::from_fn(|| deps.notifiers.direct.reserve_slot())
        .take(wanted)
        .collect();
    let wakes = write_all(&deps.store, &tx, &units, &slots).await?;
    let started = direct_runs::claim(&deps.notifiers.direct_runs, &tx, &units).await?;
    for member in members {
        member.batch.start_commit();
    }
    if let Err(error) = tx.commit().await {
        resolve_commit(deps, members, &units, error).await?;
    }
    drop(spans);
    notify(deps, &units, wakes, slots);
    let due = units
        .iter()
        .map(|unit| unit.writes.due_runs.len())
        .sum::<usize>();
    if due > started.len() {
        deps.notifiers.runs.notify_one();
    }
    started.into_iter().for_each(StartedRun::hand_over);
    Ok(units.into_iter().map(UnitOfWork::into_cached).collect())
}

fn notify(
    deps: &TaxpayerDeps,
    units: &[UnitOfWork],
    wakes: Vec<(EndpointKey, WakeResult)>,
    slots: Vec<ReservedSlot<'_>>,
) {
    let notifiers = &deps.notifiers;
    let mut slots = slots.into_iter();
    for (endpoint, wake) in wakes {
        match wake {
            WakeResult::Taken(lease) => {
                if let Some(slot) = slots.next() {
                    slot.hand_over(lease, None);
                }
            }
            WakeResult::Held => notifiers.endpoint_work.wake(endpoint),
            WakeResult::Due => notifiers.endpoints.notify_one(),
        }
    }
    for unit in units {
        // Tells the callers that wait for a run that is over, or whose document may have been replaced.
        let due_runs = &unit.writes.due_runs;
        for run in unit
            .changed_runs()
            .filter(|run| run.is_settled() || due_runs.contains(&run.id))
        {
            notifiers.run_changes.publish(run);
        }
    }
}
