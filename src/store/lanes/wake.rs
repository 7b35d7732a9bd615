//! Makes lanes due: because of new work, at the start of a process, or because a step is no longer blocked.

use std::collections::HashSet;

use database::sql::{self, SqlOnce, dialect};
use database::{StoreError, Transaction};
use sea_orm::sea_query::{OnConflict, Query};
use sea_orm::{ConnectionTrait, Statement};

use crate::store::Store;
use crate::store::lanes::fair_queue::{self, BlockedStep};
use crate::store::lanes::{LaneKind, PROBE_STEP, statement_on_keys};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedLane {
    pub key: String,
    pub taxpayer_id: i64,
    /// The deadline in microseconds since 1970. A claim takes the lanes of a taxpayer in the order of their
    /// deadlines.
    pub deadline: i64,
    pub next_step: Option<&'static str>,
}

/// Makes these lanes due now, and stores their taxpayer, deadline and next step. Creates the lanes that do not exist
/// yet.
pub async fn enqueue(
    tx: &Transaction,
    kind: LaneKind,
    lanes: &[QueuedLane],
) -> Result<(), StoreError> {
    if lanes.is_empty() {
        return Ok(());
    }
    let now = sql::now(tx.get_database_backend());
    let mut statement = Query::insert();
    statement.into_table("lanes").columns([
        "kind",
        "key",
        "epoch",
        "version",
        "taxpayer_id",
        "deadline",
        "next_step",
        "next_due_at",
    ]);
    for lane in lanes {
        statement.values_panic([
            kind.as_str().into(),
            lane.key.as_str().into(),
            0_i64.into(),
            0_i64.into(),
            lane.taxpayer_id.into(),
            lane.deadline.into(),
            lane.next_step.into(),
            now.clone(),
        ]);
    }
    let known = OnConflict::columns(["kind", "key"])
        .update_columns(["taxpayer_id", "deadline", "next_step", "next_due_at"])
        .to_owned();
    tx.execute(statement.on_conflict(known)).await?;
    Ok(())
}

/// The lanes of the given keys that `wake` makes due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanesToWake {
    All,
    /// All except lanes of parked endpoints, which keep their due times. Use this for new work.
    NotParked,
    /// All except lanes with a lease, even an expired one; these keep their due times. Use this at the start of a
    /// process. If the holder of such a lane has crashed, the next claim has to wait until its due time.
    WithoutHolder,
}

static WAKE: SqlOnce = SqlOnce::new(|dialect| {
    let now = dialect.clock();
    let rows = dialect.json_elements("$2", "rows");
    let keeps = format!(
        "($3 = 'not-parked' AND lanes.next_step = '{PROBE_STEP}' AND lanes.next_due_at > {now}) \
         OR ($3 = 'without-holder' AND lanes.lease_until IS NOT NULL)"
    );
    format!(
        "INSERT INTO lanes (kind, key, epoch, version, next_due_at) \
         SELECT $1, value ->> 0, 0, 0, {now} FROM {rows} WHERE TRUE ORDER BY 2 ON CONFLICT (kind, key) \
         DO UPDATE SET next_due_at = CASE WHEN {keeps} THEN lanes.next_due_at ELSE {now} END \
         RETURNING lanes.key AS name, (lease_until IS NOT NULL AND lease_until >= {now}) AS is_held"
    )
});

/// Makes lanes due now, and creates those that do not exist. Returns the keys of the lanes that are held. All these
/// lanes stay locked until the transaction ends, so that no holder can release its lane without seeing the new work.
pub async fn wake(
    tx: &Transaction,
    kind: LaneKind,
    keys: &[String],
    which: LanesToWake,
) -> Result<HashSet<String>, StoreError> {
    let mut held = HashSet::new();
    if keys.is_empty() {
        return Ok(held);
    }
    let which = match which {
        LanesToWake::All => "all",
        LanesToWake::NotParked => "not-parked",
        LanesToWake::WithoutHolder => "without-holder",
    };
    for row in tx
        .query_all_raw(statement_on_keys(tx, &WAKE, kind, keys, [which.into()]))
        .await?
    {
        if row.try_get("", "is_held")? {
            held.insert(row.try_get("", "name")?);
        }
    }
    Ok(held)
}

/// The waiting lanes that `make_waiting_due` makes due.
#[derive(Debug, Clone, Copy)]
pub enum WaitingLanes<'a> {
    /// The lanes that wait for one of these steps, except lanes for whose taxpayer the step is still blocked according
    /// to `blocked`.
    For {
        kind: LaneKind,
        steps: &'a [&'static str],
        blocked: &'a [BlockedStep],
    },
    /// All lanes with a due time, because the clock was set back after the due times were set. A lane without work
    /// becomes due, too; its next holder then releases it again.
    All,
}

/// Makes waiting lanes due now. Returns the number of changed lanes.
pub async fn make_waiting_due(store: &Store, which: WaitingLanes<'_>) -> Result<u64, StoreError> {
    let now = dialect(store.backend()).clock();
    let condition = match which {
        WaitingLanes::All => String::new(),
        WaitingLanes::For {
            kind,
            steps,
            blocked,
        } => format!(
            " AND kind = '{}' AND next_step IN ('{}') AND (lease_until IS NULL OR lease_until < {now}){}",
            kind.as_str(),
            steps.join("', '"),
            fair_queue::no_blocked_step_condition("lanes", blocked)
        ),
    };
    let sql = format!("UPDATE lanes SET next_due_at = {now} WHERE next_due_at > {now}{condition}");
    let tx = store.begin().await?;
    let changed = tx
        .execute_raw(Statement::from_string(store.backend(), sql))
        .await?
        .rows_affected();
    tx.commit().await?;
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::lanes::leases::{self, LaneRelease};
    use crate::store::testing::{claim_due, stores};

    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_lane_that_is_parked_is_not_woken_before_its_time() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["7".to_owned()];
            let claim = async || {
                claim_due(store, LaneKind::Endpoint, "me", LEASE, 9)
                    .await
                    .unwrap()
            };
            let tx = store.begin().await.unwrap();
            let is_held = !wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::NotParked)
                .await
                .unwrap()
                .is_empty();
            assert!(!is_held, "nobody holds a lane that is new");
            tx.commit().await.unwrap();
            let lease = claim().await.remove(0);
            let tx = store.begin().await.unwrap();
            let is_held = !wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::NotParked)
                .await
                .unwrap()
                .is_empty();
            assert!(is_held, "it was claimed");
            let rest = LaneRelease {
                next_step: Some(PROBE_STEP),
                ..LaneRelease::new(&lease, Some(Duration::from_mins(1)))
            };
            leases::release(&tx, &[rest]).await.unwrap();
            let is_held = !wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::NotParked)
                .await
                .unwrap()
                .is_empty();
            assert!(!is_held, "it was released");
            tx.commit().await.unwrap();
            assert_eq!(claim().await, []);
            let tx = store.begin().await.unwrap();
            wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            assert_eq!(claim().await.len(), 1, "unless it is made due");
        }
    }
}
