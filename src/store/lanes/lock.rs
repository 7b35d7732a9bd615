//! Locks of lanes, which last until the transaction ends. All writers lock in the same order: taxpayers, runs, then
//! endpoints, and lanes of one kind by key. So two writers cannot deadlock.

use std::collections::{BTreeSet, HashMap, HashSet};

use database::column::json;
use database::sql::{AliasedTable, Dialect, Join, SqlOnce};
use database::{StoreError, Transaction};
use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement};

use crate::store::lanes::{LOCKED_LANES, LaneKind, LaneName, Lease};

/// The treatment of lanes that another transaction has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfLocked {
    Await,
    Skip,
}

/// The lanes that this transaction has locked, and those that it skipped. Two kinds of lanes are in neither set: those
/// that do not exist, and those that became free between the two statements of `lock`. This transaction has locked the
/// latter, but has not read their state.
#[derive(Debug, Default)]
pub struct LockedLanes {
    own: HashMap<LaneName, LockedLane>,
    /// The lanes that another transaction has locked.
    pub skipped: HashSet<LaneName>,
}

#[derive(Debug)]
struct LockedLane {
    version: i64,
    epoch: i64,
    is_leased: bool,
}

impl LockedLanes {
    pub fn contains(&self, lane: &LaneName) -> bool {
        self.own.contains_key(lane)
    }

    /// Returns the new version of a lane. `None` if this transaction has not locked the lane.
    pub fn version(&self, lane: &LaneName) -> Option<i64> {
        self.own.get(lane).map(|locked| locked.version)
    }

    /// True if the lane of this lease is locked and no other process has claimed it.
    pub fn is_held(&self, lease: &Lease) -> bool {
        let locked = self.own.get(&LaneName::from(lease));
        locked.is_some_and(|locked| locked.is_leased && locked.epoch == lease.epoch)
    }
}

impl TryFrom<&QueryResult> for LaneName {
    type Error = StoreError;

    fn try_from(row: &QueryResult) -> Result<Self, StoreError> {
        let kind: String = row.try_get("", "kind")?;
        let kind = LaneKind::ALL
            .into_iter()
            .find(|one| one.as_str() == kind)
            .ok_or(StoreError::Stale)?;
        Ok(Self {
            kind,
            key: row.try_get("", "name")?,
        })
    }
}

/// Returns the table `given`: the lanes of the JSON list `$1`, in the order in which they must be locked (by the name
/// of the kind, descending, then by key). Each element of the list is a kind and a key.
fn given_lanes_table(dialect: &dyn Dialect) -> String {
    let rows = dialect.json_elements("$1", "rows");
    format!(
        "(SELECT value ->> 0 AS kind, value ->> 1 AS name FROM {rows} ORDER BY 1 DESC, 2) AS given"
    )
}

/// Returns the table `found`: those of the given lanes that no other transaction has locked. Selecting from it locks
/// them.
fn unlocked_lanes_table(dialect: &dyn Dialect) -> String {
    let given = given_lanes_table(dialect);
    let condition = "lanes.kind = given.kind AND lanes.key = given.name";
    let found = dialect.lateral_lock(LOCKED_LANES, "FOR UPDATE SKIP LOCKED", condition);
    format!(
        "found AS MATERIALIZED (SELECT given.kind AS kind, lanes.key AS name FROM {given} {found})"
    )
}

/// Builds the statement that increments the versions of the lanes of the table `given`. It is an upsert, because
/// PostgreSQL then looks up each lane by its key; for an update it reads all lanes as long as there are few.
fn increment_versions_sql(table: &str) -> String {
    format!(
        "INSERT INTO lanes (kind, key, epoch, version) SELECT given.kind, given.name, 0, 1 FROM {table} WHERE TRUE \
         ON CONFLICT (kind, key) DO UPDATE SET version = lanes.version + 1 \
         RETURNING lanes.kind AS kind, lanes.key AS name, lanes.version AS version, lanes.epoch AS epoch, \
         lanes.lease_until IS NOT NULL AS is_leased"
    )
}

static LOCK: SqlOnce = SqlOnce::new(|dialect| increment_versions_sql(&given_lanes_table(dialect)));

static LOCK_FREE: SqlOnce = SqlOnce::new(|dialect| {
    format!(
        "WITH {} {}",
        unlocked_lanes_table(dialect),
        increment_versions_sql("found AS given")
    )
});

/// Locks these lanes for the rest of the transaction and increments their versions. Creates the lanes that do not
/// exist, except with `IfLocked::Skip`.
pub async fn lock(
    tx: &Transaction,
    lanes: &[LaneName],
    if_taken: IfLocked,
) -> Result<LockedLanes, StoreError> {
    let mut locked = LockedLanes::default();
    let sql = match if_taken {
        IfLocked::Await => &LOCK,
        IfLocked::Skip => &LOCK_FREE,
    };
    for row in tx.query_all_raw(statement_on_lanes(tx, sql, lanes)).await? {
        let lane = LockedLane {
            version: row.try_get("", "version")?,
            epoch: row.try_get("", "epoch")?,
            is_leased: row.try_get("", "is_leased")?,
        };
        locked.own.insert(LaneName::try_from(&row)?, lane);
    }
    let rest: Vec<_> = lanes
        .iter()
        .filter(|lane| !locked.contains(lane))
        .cloned()
        .collect();
    locked.skipped = lock_keeping_versions(tx, &rest).await?;
    Ok(locked)
}

/// Waits until no other transaction has locked the lane. SQLite has only one writer, so a transaction that has begun
/// need not wait. A lock would only be one more write, which fails if the disk is full.
pub async fn await_release(tx: &Transaction, lane: LaneName) -> Result<(), StoreError> {
    if tx.get_database_backend() == DbBackend::Postgres {
        lock(tx, &[lane], IfLocked::Await).await?;
    }
    Ok(())
}

static LOCK_OR_LIST: SqlOnce = SqlOnce::new(|dialect| {
    let found = unlocked_lanes_table(dialect);
    let rows = dialect.json_elements("$1", "rows");
    let exists = dialect.lateral_join(
        Join::Inner,
        AliasedTable {
            table: "lanes",
            alias: "l",
        },
        "l.kind = rows.value ->> 0 AND l.key = rows.value ->> 1",
    );
    format!(
        "WITH {found} SELECT l.kind AS kind, l.key AS name FROM {rows} {exists} \
         WHERE NOT EXISTS (SELECT 1 FROM found WHERE found.kind = l.kind AND found.name = l.key)"
    )
});

/// Locks these lanes for the rest of the transaction, without changing their versions. Returns the lanes that it
/// skipped, because another transaction has locked them. Lanes that do not exist are ignored.
pub async fn lock_keeping_versions(
    tx: &Transaction,
    lanes: &[LaneName],
) -> Result<HashSet<LaneName>, StoreError> {
    // SQLite has one writer, so no other transaction has locked a lane.
    if lanes.is_empty() || tx.get_database_backend() == DbBackend::Sqlite {
        return Ok(HashSet::new());
    }
    let rows = tx
        .query_all_raw(statement_on_lanes(tx, &LOCK_OR_LIST, lanes))
        .await?;
    rows.iter().map(LaneName::try_from).collect()
}

fn statement_on_lanes(tx: &Transaction, sql: &SqlOnce, lanes: &[LaneName]) -> Statement {
    let backend = tx.get_database_backend();
    // A set, because PostgreSQL rejects an upsert with the same key twice.
    let given: BTreeSet<_> = lanes
        .iter()
        .map(|lane| (lane.kind.as_str(), &lane.key))
        .collect();
    Statement::from_sql_and_values(backend, sql.get(backend), [json(&given).into()])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sea_orm::Value;

    use super::*;
    use crate::store::lanes::leases::{self, LaneRelease};
    use crate::store::lanes::{self, LanesToWake};
    use crate::store::testing::{claim_due, query_plan, stores};

    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn a_lane_that_another_transaction_has_locked_is_left_out() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["1", "2", "3"].map(str::to_owned);
            let names = keys
                .each_ref()
                .map(|key| LaneName::new(LaneKind::Taxpayer, key));
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Taxpayer, &keys[..2], LanesToWake::All)
                .await
                .unwrap();
            lanes::wake(&tx, LaneKind::Run, &keys[..1], LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            for version in 1..3 {
                let tx = store.begin().await.unwrap();
                let locked = lock(&tx, &names, IfLocked::Skip).await.unwrap();
                let versions = names.each_ref().map(|lane| locked.version(lane));
                assert_eq!(
                    versions,
                    [Some(version), Some(version), None],
                    "the third does not exist"
                );
                assert!(
                    !locked.contains(&LaneName::new(LaneKind::Run, "1")),
                    "a lane of another kind is not locked"
                );
                tx.commit().await.unwrap();
            }
            if store.backend() == DbBackend::Postgres {
                let other = store.begin().await.unwrap();
                lock(
                    &other,
                    &[LaneName::new(LaneKind::Taxpayer, "1")],
                    IfLocked::Await,
                )
                .await
                .unwrap();
                let tx = store.begin().await.unwrap();
                let locked = lock(&tx, &names, IfLocked::Skip).await.unwrap();
                let versions = names.each_ref().map(|lane| locked.version(lane));
                assert_eq!(versions, [None, Some(3), None]);
            }
        }
    }

    #[tokio::test]
    async fn each_lane_is_locked_by_its_key_however_few_there_are() {
        // PostgreSQL only: its plan depends on the number of lanes.
        for test in stores().await.into_iter().skip(1) {
            let store = &test.store;
            let lanes: [Value; 1] = ["[[\"taxpayer\", \"1\"]]".into()];
            let statements = [
                (&LOCK_FREE, lanes.to_vec()),
                (&LOCK_OR_LIST, lanes.to_vec()),
            ];
            for (sql, values) in statements {
                let steps = query_plan(store, sql.get(store.backend()), values).await;
                let scans = steps
                    .iter()
                    .filter(|step| step.contains("using lanes_pkey"))
                    .count();
                let lookups = steps
                    .iter()
                    .filter(|step| step.contains("Index Cond"))
                    .count();
                assert!(scans > 0 && scans == lookups, "{steps:#?}");
            }
        }
    }

    #[tokio::test]
    async fn a_locked_lane_is_held_by_the_lease_of_its_last_claim_only() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Run, &["7/a".to_owned()], LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let lease = claim_due(store, LaneKind::Run, "me", LEASE, 1)
                .await
                .unwrap()
                .remove(0);
            let older = Lease {
                epoch: lease.epoch - 1,
                ..lease.clone()
            };
            let names = [LaneName::from(&lease)];
            let tx = store.begin().await.unwrap();
            let locked = lock(&tx, &names, IfLocked::Skip).await.unwrap();
            assert!(locked.is_held(&lease) && !locked.is_held(&older));
            leases::release(&tx, &[LaneRelease::new(&lease, None)])
                .await
                .unwrap();
            assert!(
                !lock(&tx, &names, IfLocked::Skip)
                    .await
                    .unwrap()
                    .is_held(&lease),
                "it is released"
            );
        }
    }

    #[tokio::test]
    async fn lanes_that_others_have_locked_are_listed_and_the_rest_is_locked() {
        // PostgreSQL only: SQLite has one writer.
        for test in stores().await.into_iter().skip(1) {
            let store = &test.store;
            let keys = ["1", "2"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Run, &keys, LanesToWake::All)
                .await
                .unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let other = store.begin().await.unwrap();
            lock(
                &other,
                &[LaneName::new(LaneKind::Endpoint, "2")],
                IfLocked::Await,
            )
            .await
            .unwrap();
            let wanted = [
                LaneName::new(LaneKind::Endpoint, "1"),
                LaneName::new(LaneKind::Endpoint, "2"),
                LaneName::new(LaneKind::Endpoint, "3"),
                LaneName::new(LaneKind::Run, "2"),
            ];
            let tx = store.begin().await.unwrap();
            let held = lock_keeping_versions(&tx, &wanted).await.unwrap();
            assert_eq!(
                held,
                HashSet::from([wanted[1].clone()]),
                "and the third does not exist"
            );
            let third = store.begin().await.unwrap();
            let names = ["1", "2"].map(|key| LaneName::new(LaneKind::Run, key));
            let free = lock(&third, &names, IfLocked::Skip).await.unwrap();
            assert_eq!(
                names.each_ref().map(|lane| free.contains(lane)),
                [true, false]
            );
            other.rollback().await.unwrap();
            assert!(
                lock_keeping_versions(&tx, &wanted)
                    .await
                    .unwrap()
                    .is_empty(),
                "all are free"
            );
        }
    }
}
