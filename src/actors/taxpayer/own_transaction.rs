//! The transactions of one taxpayer: of a batch that its group left out, and of a large command. Reading, deciding and
//! rendering thousands of lines takes long, so a large command is decided on a snapshot of the database, while others
//! write. Only then is the taxpayer's lane locked. The changes are written if nobody has written for this taxpayer
//! since the snapshot.

use database::{Sharing, StoreError};

use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::flush::write_and_commit;
use crate::actors::taxpayer::member::{
    ExecutedBatch, MemberOutcome, TransactionMember, idempotency_claims, step_leases,
};
use crate::actors::taxpayer::transaction::{
    DecidedMember, LockedMember, decide_commands, load_members, lock_lanes_to_write, reserve_ids,
};
use crate::store::idempotency;
use crate::store::lanes::leases;
use crate::store::lanes::{self, IfLocked, LaneName, Lease, views};

/// Executes the commands of one taxpayer. Creates its lane if it does not exist. Does not wait for a lane that another
/// transaction has locked, because the wait would occupy a connection. A panic of a command is not caught here.
pub(super) async fn execute_alone(
    deps: &TaxpayerDeps,
    member: TransactionMember<'_>,
    sharing: Sharing,
) -> Result<MemberOutcome, StoreError> {
    let ids = reserve_ids(&deps.store, &member).await?;
    let tx = match sharing {
        Sharing::Shared => deps.store.begin().await?,
        Sharing::Apart => deps.store.begin_unshared().await?,
    };
    let locked = lanes::lock(
        &tx,
        &member.lanes_to_lock().collect::<Vec<_>>(),
        IfLocked::Skip,
    )
    .await?;
    if !locked.skipped.is_empty() {
        tx.rollback().await?;
        return Ok(MemberOutcome::Held(locked.skipped.into_iter().collect()));
    }
    let own = member.taxpayer_lane();
    let version = match locked.version(&own) {
        Some(version) => Some(version),
        None => lanes::lock(&tx, std::slice::from_ref(&own), IfLocked::Await)
            .await?
            .version(&own),
    };
    let version = version.ok_or(StoreError::Stale)?;
    // `lanes::lock` may have locked a lane without reading its state, if the lane became free during the call. The
    // leases of such lanes are checked here.
    let unknown: Vec<_> = step_leases(member.tasks)
        .map(|(_, lease)| lease)
        .filter(|lease| !locked.contains(&LaneName::from(*lease)))
        .cloned()
        .collect();
    let fenced = leases::fence(&tx, &unknown, IfLocked::Await).await?.held;
    let member = LockedMember {
        member,
        ids,
        version,
    };
    let mut entered = load_members(deps, &tx, vec![member]).await?;
    let Some((member, mut unit)) = entered.members.pop() else {
        return Err(StoreError::Stale);
    };
    let results = decide_commands(
        member.tasks,
        &mut unit,
        &entered.used_keys,
        &|lease: &Lease| locked.is_held(lease) || fenced.contains(lease),
    );
    let held = lock_lanes_to_write(&tx, std::iter::once(&unit)).await?;
    if !held.is_empty() {
        tx.rollback().await?;
        return Ok(MemberOutcome::Held(held.into_iter().collect()));
    }
    let cached = write_and_commit(deps, tx, &[member], vec![unit])
        .await?
        .pop()
        .ok_or(StoreError::Stale)?;
    Ok(MemberOutcome::Executed(Box::new(ExecutedBatch {
        cached,
        results,
    })))
}

/// Executes a large command in a transaction of its own. The command is first decided on a snapshot, without locks. If
/// it records steps of a run, if its taxpayer has no lane yet, or if somebody has written for the taxpayer since the
/// snapshot, it is decided with its lanes locked.
pub(super) async fn execute_large(
    deps: &TaxpayerDeps,
    member: TransactionMember<'_>,
) -> Result<MemberOutcome, StoreError> {
    let under_lane = TransactionMember {
        cached: None,
        ..member
    };
    if step_leases(member.tasks).next().is_none()
        && let Some(decided) = Box::pin(decide_on_snapshot(deps, member)).await?
        && let Some(outcome) = Box::pin(write_decision(deps, decided)).await?
    {
        return Ok(outcome);
    }
    Box::pin(execute_alone(deps, under_lane, Sharing::Apart)).await
}

/// Decides the command on a snapshot of the database. Returns `None` if the taxpayer has no lane yet.
async fn decide_on_snapshot<'a>(
    deps: &TaxpayerDeps,
    member: TransactionMember<'a>,
) -> Result<Option<DecidedMember<'a>>, StoreError> {
    let ids = reserve_ids(&deps.store, &member).await?;
    let snapshot = deps.store.begin_snapshot().await?;
    let LaneName { kind, key } = member.taxpayer_lane();
    let Some(lane) = views::lane_state(&snapshot, kind, &key).await? else {
        snapshot.rollback().await?;
        return Ok(None);
    };
    let member = LockedMember {
        member,
        ids,
        // `write_decision` compares this with the version of the locked lane. The lock raises the version by 1.
        version: lane.version + 1,
    };
    let mut entered = load_members(deps, &snapshot, vec![member]).await?;
    snapshot.rollback().await?;
    let Some((member, mut unit)) = entered.members.pop() else {
        return Err(StoreError::Stale);
    };
    let results = decide_commands(member.tasks, &mut unit, &entered.used_keys, &|_| true);
    Ok(Some(DecidedMember {
        member,
        unit,
        results,
    }))
}

/// Writes the changes of the decision. Returns `None` and changes nothing if the decision is out of date.
async fn write_decision(
    deps: &TaxpayerDeps,
    decided: DecidedMember<'_>,
) -> Result<Option<MemberOutcome>, StoreError> {
    let DecidedMember {
        member,
        unit,
        results,
    } = decided;
    if !unit.has_changes() {
        let cached = unit.into_cached().with_version_before_lock();
        return Ok(Some(MemberOutcome::Executed(Box::new(ExecutedBatch {
            cached,
            results,
        }))));
    }
    let tx = deps.store.begin_unshared().await?;
    let locked = lanes::lock(&tx, &[member.taxpayer_lane()], IfLocked::Skip).await?;
    let mut held = locked.skipped.clone();
    if held.is_empty() {
        let is_current = locked.version(&member.taxpayer_lane()) == Some(unit.version);
        let used_keys =
            idempotency::find_taken_keys(&tx, &idempotency_claims(member.tasks.iter()), unit.now)
                .await?;
        if !is_current || !used_keys.is_empty() {
            tx.rollback().await?;
            return Ok(None);
        }
        held = lock_lanes_to_write(&tx, std::iter::once(&unit)).await?;
    }
    if !held.is_empty() {
        tx.rollback().await?;
        return Ok(Some(MemberOutcome::Held(held.into_iter().collect())));
    }
    let cached = write_and_commit(deps, tx, &[member], vec![unit])
        .await?
        .pop()
        .ok_or(StoreError::Stale)?;
    Ok(Some(MemberOutcome::Executed(Box::new(ExecutedBatch {
        cached,
        results,
    }))))
}
