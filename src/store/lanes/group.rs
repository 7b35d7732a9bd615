//! Operations on the lanes of a commit group: they lock the lanes of its taxpayers, and wake or claim the lanes
//! of its webhook endpoints. Each operation is one statement, which takes the lanes in the order of their keys,
//! so that two writers cannot deadlock.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sea_orm::{ConnectionTrait, Statement, Value};

use crate::store::db::column::json;
use crate::store::db::connections::Transaction;
use crate::store::db::error::StoreError;
use crate::store::db::sql::{Dialect, SqlOnce};
use crate::store::lanes::{LaneKind, Lease, PROBE};

/// The start of a statement on the lanes of the kind `$1` whose keys are in the JSON list `$2`. It locks these
/// lanes in the order of their keys and defines the table `found` of their keys.
fn given_lanes(dialect: &dyn Dialect, lock: &str, condition: &str) -> String {
    let rows = dialect.json_elements("$2", "rows");
    let given = format!("(SELECT value ->> 0 AS name FROM {rows} ORDER BY 1) AS given");
    let condition = format!("lanes.kind = $1 AND lanes.key = given.name{condition}");
    let found = dialect.lateral_lock(lock, &condition);
    format!("WITH found AS MATERIALIZED (SELECT lanes.key FROM {given} {found})")
}

static LOCK_FREE: SqlOnce = SqlOnce::new(|dialect| {
    let found = given_lanes(dialect, "FOR UPDATE SKIP LOCKED", "");
    format!(
        "{found} UPDATE lanes SET version = version + 1 FROM found \
         WHERE lanes.kind = $1 AND lanes.key = found.key RETURNING lanes.key AS name, lanes.version"
    )
});

/// Locks these lanes for the rest of the transaction and increments their versions. Returns the new versions.
/// Skips lanes that do not exist and lanes that another transaction has locked.
pub async fn lock_free(
    tx: &Transaction,
    kind: LaneKind,
    keys: &[String],
) -> Result<HashMap<String, i64>, StoreError> {
    let rows = tx.query_all_raw(statement(tx, &LOCK_FREE, kind, keys, [])).await?;
    rows.iter().map(|row| Ok((row.try_get("", "name")?, row.try_get("", "version")?))).collect()
}

static CLAIM_IDLE: SqlOnce = SqlOnce::new(|dialect| {
    let now = dialect.clock();
    let idle = format!(
        " AND lanes.lease_until IS NULL \
         AND (lanes.next_step IS NULL OR lanes.next_step <> '{PROBE}' OR lanes.next_due_at <= {now})"
    );
    let found = given_lanes(dialect, "FOR UPDATE", &idle);
    format!(
        "{found} UPDATE lanes SET owner = $3, epoch = epoch + 1, lease_until = {now} + $4, next_due_at = {now} \
         FROM found WHERE lanes.kind = $1 AND lanes.key = found.key RETURNING lanes.key AS name, lanes.epoch"
    )
});

/// Claims lanes in the transaction that adds work to them. Skips lanes that do not exist, that are held, or
/// that are parked.
pub async fn claim_idle(
    tx: &Transaction,
    kind: LaneKind,
    keys: &[String],
    owner: &str,
    lease: Duration,
) -> Result<Vec<Lease>, StoreError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let lease = i64::try_from(lease.as_micros()).unwrap_or(i64::MAX / 4);
    let values = [owner.into(), lease.into()];
    let rows = tx.query_all_raw(statement(tx, &CLAIM_IDLE, kind, keys, values)).await?;
    rows.iter()
        .map(|row| Ok(Lease { kind, key: row.try_get("", "name")?, epoch: row.try_get("", "epoch")? }))
        .collect()
}

static WAKE: SqlOnce = SqlOnce::new(|dialect| {
    let now = dialect.clock();
    let rows = dialect.json_elements("$2", "rows");
    let due = format!(
        "CASE WHEN lanes.next_step = '{PROBE}' AND lanes.next_due_at > {now} THEN lanes.next_due_at ELSE {now} END"
    );
    format!(
        "INSERT INTO lanes (kind, key, epoch, version, next_due_at) \
         SELECT $1, value ->> 0, 0, 0, {now} FROM {rows} WHERE TRUE ORDER BY 2 \
         ON CONFLICT (kind, key) DO UPDATE SET next_due_at = {due} \
         RETURNING lanes.key AS name, (lease_until IS NOT NULL AND lease_until >= {now}) AS is_held"
    )
});

/// Makes lanes due now because of new work. Creates the lanes that do not exist; a parked lane keeps its due
/// time. Returns the keys of the lanes that are held. All these lanes stay locked until the transaction ends,
/// so no holder can release its lane without seeing the new work.
pub async fn wake(tx: &Transaction, kind: LaneKind, keys: &[String]) -> Result<HashSet<String>, StoreError> {
    let mut held = HashSet::new();
    if keys.is_empty() {
        return Ok(held);
    }
    for row in tx.query_all_raw(statement(tx, &WAKE, kind, keys, [])).await? {
        if row.try_get("", "is_held")? {
            held.insert(row.try_get("", "name")?);
        }
    }
    Ok(held)
}

fn statement<const N: usize>(
    tx: &Transaction,
    sql: &SqlOnce,
    kind: LaneKind,
    keys: &[String],
    more: [Value; N],
) -> Statement {
    let backend = tx.get_database_backend();
    // Each key is put into a list of its own, because then both databases can read it as text with the same
    // operator, `->>`.
    let keys: Vec<_> = keys.iter().map(|key| [key]).collect();
    let values = [kind.as_str().into(), json(&keys).into()].into_iter().chain(more);
    Statement::from_sql_and_values(backend, sql.get(backend), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lanes;
    use crate::store::lanes::leases::{LaneRelease, release_all};
    use crate::store::testing::stores;

    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_lane_that_another_transaction_has_locked_is_left_out() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["1", "2", "3"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::make_due(&tx, LaneKind::Taxpayer, &keys[..2]).await.unwrap();
            tx.commit().await.unwrap();
            for version in 1..3 {
                let tx = store.begin().await.unwrap();
                let locked = lock_free(&tx, LaneKind::Taxpayer, &keys).await.unwrap();
                let both = keys[..2].iter().map(|key| (key.clone(), version)).collect();
                assert_eq!(locked, both, "the third does not exist");
                tx.commit().await.unwrap();
            }
            if store.backend() == sea_orm::DbBackend::Postgres {
                let other = store.begin().await.unwrap();
                lanes::lock(&other, LaneKind::Taxpayer, "1").await.unwrap();
                let tx = store.begin().await.unwrap();
                let locked = lock_free(&tx, LaneKind::Taxpayer, &keys).await.unwrap();
                assert_eq!(locked, HashMap::from([("2".to_owned(), 3)]));
            }
        }
    }

    #[tokio::test]
    async fn a_lane_that_is_parked_is_not_woken_before_its_time() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["7".to_owned()];
            let claim = async || lanes::claim(store, LaneKind::Endpoint, "me", LEASE, 9).await.unwrap();
            let tx = store.begin().await.unwrap();
            let is_held = !wake(&tx, LaneKind::Endpoint, &keys).await.unwrap().is_empty();
            assert!(!is_held, "nobody holds a lane that is new");
            tx.commit().await.unwrap();
            let lease = claim().await.remove(0);
            let tx = store.begin().await.unwrap();
            let is_held = !wake(&tx, LaneKind::Endpoint, &keys).await.unwrap().is_empty();
            assert!(is_held, "it was claimed");
            let rest =
                LaneRelease { lease, delay: Some(Duration::from_mins(1)), next_step: Some(lanes::PROBE) };
            release_all(&tx, LaneKind::Endpoint, &[rest]).await.unwrap();
            let is_held = !wake(&tx, LaneKind::Endpoint, &keys).await.unwrap().is_empty();
            assert!(!is_held, "it was released");
            tx.commit().await.unwrap();
            assert_eq!(claim().await, []);
            let tx = store.begin().await.unwrap();
            lanes::make_due(&tx, LaneKind::Endpoint, &keys).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(claim().await.len(), 1, "unless it is made due");
        }
    }

    #[tokio::test]
    async fn new_work_takes_over_a_lane_that_is_free_and_awake() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["7".to_owned()];
            let take = async || {
                let tx = store.begin().await.unwrap();
                let taken = claim_idle(&tx, LaneKind::Endpoint, &keys, "me", LEASE).await.unwrap().pop();
                tx.commit().await.unwrap();
                taken
            };
            let rest = async |lease: Lease, next_step| {
                let delay = Some(Duration::from_mins(1));
                let tx = store.begin().await.unwrap();
                release_all(&tx, LaneKind::Endpoint, &[LaneRelease { lease, delay, next_step }])
                    .await
                    .unwrap();
                tx.commit().await.unwrap();
            };
            assert_eq!(take().await, None, "there is no such lane");
            let tx = store.begin().await.unwrap();
            wake(&tx, LaneKind::Endpoint, &keys).await.unwrap();
            tx.commit().await.unwrap();
            let lease = take().await.unwrap();
            assert_eq!((lease.key.as_str(), take().await), ("7", None), "it is held");
            rest(lease, None).await;
            let lease = take().await.expect("a lane that waits for another attempt has new work now");
            rest(lease, Some(lanes::PROBE)).await;
            assert_eq!(take().await, None, "it is parked");
            let tx = store.begin().await.unwrap();
            lanes::make_due(&tx, LaneKind::Endpoint, &keys).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(take().await.unwrap().epoch, 3);
        }
    }
}
