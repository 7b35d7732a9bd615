//! One transaction for the commands of several taxpayers: locks the lanes, reads the rows, decides each command alone,
//! writes all changes and commits. Replies are sent only after the commit. The transactions of one taxpayer in
//! `own_transaction` take the same steps.

use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use database::{StoreError, Transaction};
use supervision::Task;
use tokio::time::sleep;

use crate::actors::taxpayer::cached_state::CachedState;
use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::flush::write_and_commit;
use crate::actors::taxpayer::handle::{CommandEnvelope, CommandError, CommandResult};
use crate::actors::taxpayer::load::{self, UnloadedMember};
use crate::actors::taxpayer::member::{
    CommandResults, ExecutedBatch, MemberOutcome, TransactionMember, idempotency_claims,
    step_leases,
};
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::{ReservedIds, WantedIdCounts};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::Store;
use crate::store::idempotency::{self, KeyEntry};
use crate::store::lanes::{self, IfLocked, LaneName, Lease, LockedLanes};

/// The longest time that a transaction waits for the lanes of runs and endpoints. Deliveries lock an endpoint's lane
/// for a few milliseconds whenever they write outcomes. If a lane stays locked for longer, its taxpayer leaves the
/// group and waits alone, so that nobody else is delayed.
const LANE_WAIT: Duration = Duration::from_millis(25);
const LANE_RETRY_EVERY: Duration = Duration::from_millis(2);

/// A member whose lanes are locked.
pub(super) struct LockedMember<'a> {
    pub(super) member: TransactionMember<'a>,
    pub(super) ids: ReservedIds,
    /// The version of the taxpayer's lane.
    pub(super) version: i64,
}

/// The members of a transaction with the rows that were read for them, and their idempotency keys that are already
/// used.
pub(super) struct LoadedMembers<'a> {
    pub(super) members: Vec<(TransactionMember<'a>, UnitOfWork)>,
    pub(super) used_keys: Vec<String>,
}

/// A member whose commands are decided, before anything is written.
pub(super) struct DecidedMember<'a> {
    pub(super) member: TransactionMember<'a>,
    pub(super) unit: UnitOfWork,
    pub(super) results: CommandResults,
}

impl LockedMember<'_> {
    /// Returns true if nobody else has written for the taxpayer since its state was cached.
    fn is_current(&self) -> bool {
        self.member
            .cached
            .as_ref()
            .is_some_and(|cached| cached.version + 1 == self.version)
    }
}

/// Executes the commands of several taxpayers. Returns the outcome of each member, in the order of `members`.
pub(super) async fn execute_group(
    deps: &TaxpayerDeps,
    members: Vec<TransactionMember<'_>>,
) -> Result<Vec<MemberOutcome>, StoreError> {
    let order: Vec<_> = members.iter().map(|member| member.id).collect();
    let mut reserved = Vec::with_capacity(members.len());
    for member in members {
        let ids = reserve_ids(&deps.store, &member).await?;
        reserved.push((member, ids));
    }
    let tx = deps.store.begin().await?;
    let lanes: Vec<_> = reserved
        .iter()
        .flat_map(|(member, _)| member.lanes_to_lock())
        .collect();
    let locked = lanes::lock(&tx, &lanes, IfLocked::Skip).await?;
    let mut outcomes = HashMap::new();
    for (member, _) in &reserved {
        if let Some(held) = outcome_if_held(member.lanes_to_lock(), &locked.skipped) {
            outcomes.insert(member.id, held);
        }
    }
    let loaded = load_members(deps, &tx, locked_members(reserved, &locked)).await?;
    let mut decided = decide_members(loaded, &locked);
    let held = lock_lanes_to_write(&tx, decided.iter().map(|decision| &decision.unit)).await?;
    decided.retain(|DecidedMember { member, unit, .. }| {
        match outcome_if_held(unit.lanes_to_write(), &held) {
            Some(held) => {
                outcomes.insert(member.id, held);
                false
            }
            None => true,
        }
    });
    outcomes.extend(write_decisions(deps, tx, decided).await?);
    let outcomes = order
        .iter()
        .map(|id| outcomes.remove(id).unwrap_or(MemberOutcome::LeftOut));
    Ok(outcomes.collect())
}

/// Returns `MemberOutcome::Held` if other transactions have locked some of these lanes, which a member needs; else
/// `None`.
fn outcome_if_held(
    lanes: impl Iterator<Item = LaneName>,
    held: &HashSet<LaneName>,
) -> Option<MemberOutcome> {
    let held: Vec<_> = lanes.filter(|lane| held.contains(lane)).collect();
    (!held.is_empty()).then_some(MemberOutcome::Held(held))
}

/// Returns the members whose lanes are all locked.
fn locked_members<'a>(
    reserved: Vec<(TransactionMember<'a>, ReservedIds)>,
    locked: &LockedLanes,
) -> Vec<LockedMember<'a>> {
    let members = reserved.into_iter().filter_map(|(member, ids)| {
        let version = locked.version(&member.taxpayer_lane())?;
        let are_all_locked = member.lanes_to_lock().all(|lane| locked.contains(&lane));
        are_all_locked.then_some(LockedMember {
            member,
            ids,
            version,
        })
    });
    members.collect()
}

/// Decides the commands of each member. After a panic, the member is left out with all its changes. Its actor then
/// executes the batch alone and recovers if the command panics again.
fn decide_members<'a>(loaded: LoadedMembers<'a>, locked: &LockedLanes) -> Vec<DecidedMember<'a>> {
    let mut decided = Vec::new();
    for (member, mut unit) in loaded.members {
        let results = catch_unwind(AssertUnwindSafe(|| {
            decide_commands(
                member.tasks,
                &mut unit,
                &loaded.used_keys,
                &|lease: &Lease| locked.is_held(lease),
            )
        }));
        if let Ok(results) = results {
            decided.push(DecidedMember {
                member,
                unit,
                results,
            });
        }
    }
    decided
}

/// Writes all changes and commits. Returns the outcome of each member.
async fn write_decisions(
    deps: &TaxpayerDeps,
    tx: Transaction,
    decided: Vec<DecidedMember<'_>>,
) -> Result<HashMap<TaxpayerId, MemberOutcome>, StoreError> {
    let mut members = Vec::new();
    let mut units = Vec::new();
    let mut results = Vec::new();
    for decision in decided {
        members.push(decision.member);
        units.push(decision.unit);
        results.push(decision.results);
    }
    let states = write_and_commit(deps, tx, &members, units).await?;
    let executed = members.iter().zip(states).zip(results);
    let outcomes = executed.map(|((member, cached), results)| {
        let batch = ExecutedBatch { cached, results };
        (member.id, MemberOutcome::Executed(Box::new(batch)))
    });
    Ok(outcomes.collect())
}

/// Locks the lanes that these units of work write. Returns the lanes that another transaction still has locked after a
/// short wait.
pub(super) async fn lock_lanes_to_write<'a>(
    tx: &Transaction,
    units: impl Iterator<Item = &'a UnitOfWork>,
) -> Result<HashSet<LaneName>, StoreError> {
    let lanes: Vec<_> = units.flat_map(UnitOfWork::lanes_to_write).collect();
    let started = Instant::now();
    loop {
        let held = lanes::lock_keeping_versions(tx, &lanes).await?;
        if held.is_empty() || started.elapsed() > LANE_WAIT {
            return Ok(held);
        }
        sleep(LANE_RETRY_EVERY).await;
    }
}

/// Reads everything that the members need. The idempotency keys are read last: if another replica has just committed
/// the same request, the key shows that the command is a repetition and not a conflict.
pub(super) async fn load_members<'a>(
    deps: &TaxpayerDeps,
    tx: &Transaction,
    mut locked: Vec<LockedMember<'a>>,
) -> Result<LoadedMembers<'a>, StoreError> {
    let outdated: Vec<_> = locked
        .iter()
        .filter(|one| !one.is_current())
        .map(|one| (one.member.id, one.version))
        .collect();
    let mut loaded = CachedState::load(tx, &outdated).await?;
    let mut starts = Vec::with_capacity(locked.len());
    for LockedMember {
        member,
        ids,
        version,
    } in &mut locked
    {
        let kept = member.cached.take();
        let Some(cached) = loaded.remove(&member.id).or(kept) else {
            return Err(StoreError::Stale);
        };
        let cached = CachedState {
            version: *version,
            ..cached
        };
        starts.push(UnloadedMember {
            id: member.id,
            wanted: read_set(member, &cached),
            cached,
            ids: std::mem::take(ids),
        });
    }
    let now = deps.clock.now();
    let units = load::load(deps, tx, now, starts).await?;
    let claims = idempotency_claims(locked.iter().flat_map(|one| one.member.tasks));
    let used_keys = idempotency::find_taken_keys(tx, &claims, now).await?;
    let members = locked
        .into_iter()
        .map(|one| one.member)
        .zip(units)
        .collect();
    Ok(LoadedMembers { members, used_keys })
}

/// Reserves the ids that the commands of a member may use.
pub(super) async fn reserve_ids(
    store: &Store,
    member: &TransactionMember<'_>,
) -> Result<ReservedIds, StoreError> {
    let mut wanted = WantedIdCounts::default();
    for task in member.tasks {
        task.command.command.add_wanted_id_counts(&mut wanted);
    }
    wanted.reserve(store).await
}

/// Returns the rows that the commands of a member ask for.
fn read_set(member: &TransactionMember<'_>, cached: &CachedState) -> ReadSet {
    let mut wanted = ReadSet::default();
    for task in member.tasks {
        let context = ReadContext {
            taxpayer_id: member.id,
            command: task.id,
            cached,
        };
        task.command.command.add_reads(&mut wanted, &context);
    }
    wanted
}

/// Decides each command alone. A command that records steps of a run fails with `Stale` if another process has taken
/// over the run's lane. Of several commands with one idempotency key, only the first is executed.
pub(super) fn decide_commands(
    tasks: &[Task<CommandEnvelope>],
    unit: &mut UnitOfWork,
    used_keys: &[String],
    is_held: &dyn Fn(&Lease) -> bool,
) -> CommandResults {
    let stale: Vec<_> = step_leases(tasks)
        .filter(|(_, lease)| !is_held(lease))
        .map(|(id, _)| id)
        .collect();
    let results = tasks.iter().map(|task| {
        if stale.contains(&task.id) {
            return (task.id, Err(CommandError::Store(StoreError::Stale)));
        }
        (task.id, decide_unless_repeated(task, unit, used_keys))
    });
    results.collect()
}

/// Executes a command unless its idempotency key is used, and stores the key with the answer. The answer to a refusal
/// is stored by the HTTP layer instead.
fn decide_unless_repeated(
    task: &Task<CommandEnvelope>,
    unit: &mut UnitOfWork,
    used_keys: &[String],
) -> CommandResult {
    let CommandEnvelope {
        command,
        claim,
        acting,
        trace,
        ..
    } = &*task.command;
    unit.acting = acting.clone();
    unit.cause = task.id;
    let is_used = claim.as_ref().is_some_and(|claim| {
        used_keys.contains(&claim.id)
            || unit
                .writes
                .used_keys
                .iter()
                .any(|entry| entry.claim.id == claim.id)
    });
    if is_used {
        return Err(CommandError::AlreadyProcessed);
    }
    let executed = match trace {
        Some(trace) => trace.enter(|| command.execute(unit)),
        None => command.execute(unit),
    };
    let executed = executed.map_err(CommandError::Refused)?;
    if let Some(claim) = claim.clone() {
        let entry = KeyEntry {
            claim,
            command_id: Some(task.id),
            answer: executed.answer,
        };
        unit.writes.used_keys.push(entry);
    }
    Ok(executed.output)
}
