//! Finds out whether a commit that returned an error took effect.

use std::time::{Duration, Instant};

use database::{StoreError, Transaction};
use supervision::Task;
use tokio::time::sleep;

use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::handle::CommandEnvelope;
use crate::actors::taxpayer::member::{TransactionMember, idempotency_claims};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::store::Store;
use crate::store::lanes::{self, LaneKind, LaneName, views};
use crate::store::{events, idempotency};

/// The longest time for which a look-up tries to find out whether a failed commit took effect. After that the caller
/// gets the error `Unsettled`: the outcome is unknown.
const COMMIT_LOOKUP_FOR: Duration = Duration::from_secs(10);
const COMMIT_LOOKUP_EVERY: Duration = Duration::from_millis(250);

/// Finds out whether a commit that returned `error` took effect, after waiting for the end of its transaction. Returns
/// `Ok` if it took effect. If it did not, returns `error`, but `NotCommitted` in place of `Unsettled`, so that the
/// caller may repeat. Returns `Unsettled` if the database stays unreachable, or if no stored row shows the outcome.
pub(super) async fn resolve_commit(
    deps: &TaxpayerDeps,
    members: &[TransactionMember<'_>],
    units: &[UnitOfWork],
    error: StoreError,
) -> Result<(), StoreError> {
    let tasks = members.iter().map(|member| member.tasks);
    let written: Vec<_> = tasks.zip(units).collect();
    let started = Instant::now();
    while started.elapsed() < COMMIT_LOOKUP_FOR {
        match was_committed(&deps.store, &written).await {
            Ok(Some(true)) => return Ok(()),
            Ok(Some(false)) if matches!(error, StoreError::Unsettled) => {
                return Err(StoreError::NotCommitted);
            }
            Ok(_) => return Err(error),
            Err(_) => sleep(COMMIT_LOOKUP_EVERY).await,
        }
    }
    Err(StoreError::Unsettled)
}

/// Returns true if the transaction of these commands was committed, and false if it was not. Returns `None` if that is
/// unknown: no command has an event or an idempotency key to look for, and a change of the first taxpayer was committed
/// that may be this one or another one.
async fn was_committed(
    store: &Store,
    written: &[(&[Task<CommandEnvelope>], &UnitOfWork)],
) -> Result<Option<bool>, StoreError> {
    let tx = store.begin().await?;
    let mut proof = None;
    for (tasks, unit) in written {
        let lane = LaneName::new(LaneKind::Taxpayer, unit.id.to_string());
        lanes::await_release(&tx, lane).await?;
        proof = find_proof(&tx, tasks, unit).await?;
        if proof.is_some() {
            break;
        }
    }
    // On SQLite, the rollback waits for a commit that is still in progress. So the version is read after it.
    tx.rollback().await?;
    if proof.is_none()
        && let Some((_, unit)) = written.first()
        && is_lane_unchanged(store, unit).await?
    {
        proof = Some(false);
    }
    Ok(proof)
}

/// Returns true if the first event of these commands, or one of their idempotency keys, is stored, and false if it is
/// not. Returns `None` if the commands have neither.
async fn find_proof(
    tx: &Transaction,
    tasks: &[Task<CommandEnvelope>],
    unit: &UnitOfWork,
) -> Result<Option<bool>, StoreError> {
    if let Some(event) = unit.writes.events.first() {
        return Ok(Some(events::is_stored(tx, event).await?));
    }
    if unit.writes.used_keys.is_empty() {
        return Ok(None);
    }
    let commands: Vec<_> = tasks.iter().map(|task| task.id).collect();
    let is_stored =
        idempotency::has_stored_claim(tx, &idempotency_claims(tasks.iter()), &commands).await?;
    Ok(Some(is_stored))
}

/// True if nobody has committed a change for the taxpayer since the transaction of `unit` locked the taxpayer's lane:
/// each such commit stores a higher version.
async fn is_lane_unchanged(store: &Store, unit: &UnitOfWork) -> Result<bool, StoreError> {
    let key = unit.id.to_string();
    let lane = views::lane_state(store.reader(), LaneKind::Taxpayer, &key).await?;
    Ok(lane.is_none_or(|lane| lane.version < unit.version))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::actors::taxpayer::tests::ID;
    use crate::domain::events::event::EventKind;
    use crate::store::lanes::IfLocked;
    use crate::store::testing::stores;

    #[tokio::test]
    async fn a_commit_that_leaves_no_proof_is_refuted_only_by_the_version_of_the_lane() {
        for test in stores().await {
            let store = &test.store;
            let lane = LaneName::new(LaneKind::Taxpayer, ID.to_string());
            let tx = store.begin().await.unwrap();
            let locked = lanes::lock(&tx, std::slice::from_ref(&lane), IfLocked::Await).await;
            let stored = locked.unwrap().version(&lane).unwrap();
            tx.commit().await.unwrap();
            for (version, has_event, expected) in [
                (stored + 1, false, Some(false)),
                (stored, false, None),
                (stored, true, Some(false)),
            ] {
                let mut unit = UnitOfWork::with_version(store, version).await;
                if has_event {
                    unit.emit(EventKind::ApiKeyRotated, None, &json!({}));
                }
                let tasks: &[Task<CommandEnvelope>] = &[];
                assert_eq!(
                    was_committed(store, &[(tasks, &unit)]).await.unwrap(),
                    expected,
                    "version {version} of {stored}, an event: {has_event}"
                );
            }
        }
    }
}
