//! Finds out whether a commit that returned an error took effect.

use std::time::{Duration, Instant};

use database::StoreError;
use tokio::time::sleep;

use crate::actors::taxpayer::deps::TaxpayerDeps;
use crate::actors::taxpayer::member::{Member, claims};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::store::lanes::{self, LaneKind, LaneName};
use crate::store::{events, idempotency};

/// For this long, the program checks whether a failed commit took effect. After that the caller is told that the
/// outcome is unknown.
const COMMIT_LOOKUP_FOR: Duration = Duration::from_secs(10);
const COMMIT_LOOKUP_EVERY: Duration = Duration::from_millis(250);

/// Finds out whether a commit that returned an error took effect. Waits until the failed transaction has ended. Returns
/// `Ok` if the commit took effect. If it did not, returns `error`, but `NotCommitted` in place of `Unsettled`, so that
/// the caller may repeat. Returns `Unsettled` if the database stays unreachable.
pub(super) async fn resolve_commit(
    deps: &TaxpayerDeps,
    members: &[Member<'_>],
    units: &[UnitOfWork],
    error: StoreError,
) -> Result<(), StoreError> {
    let started = Instant::now();
    while started.elapsed() < COMMIT_LOOKUP_FOR {
        match was_committed(deps, members, units).await {
            Ok(true) => return Ok(()),
            Ok(false) if matches!(error, StoreError::Unsettled) => {
                return Err(StoreError::NotCommitted);
            }
            Ok(false) => return Err(error),
            Err(_) => sleep(COMMIT_LOOKUP_EVERY).await,
        }
    }
    Err(StoreError::Unsettled)
}

/// Returns true if the transaction was committed: one stored event or idempotency key of any member proves it.
async fn was_committed(
    deps: &TaxpayerDeps,
    members: &[Member<'_>],
    units: &[UnitOfWork],
) -> Result<bool, StoreError> {
    let tx = deps.store.begin().await?;
    let mut was_committed = false;
    for (Member { id, tasks, .. }, unit) in members.iter().zip(units) {
        let commands: Vec<_> = tasks.iter().map(|task| task.id).collect();
        let lane = LaneName::new(LaneKind::Taxpayer, id.to_string());
        lanes::await_release(&tx, lane).await?;
        was_committed = match unit.writes.events.first() {
            Some(event) => events::is_stored(&tx, event).await?,
            None => idempotency::has_stored_claim(&tx, &claims(tasks.iter()), &commands).await?,
        };
        if was_committed {
            break;
        }
    }
    tx.rollback().await?;
    Ok(was_committed)
}
