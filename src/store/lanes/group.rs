//! Operations on the lanes of a commit group: they lock the lanes that its commands need, and wake or claim the
//! lanes of its webhook endpoints. Each operation is one statement. All writers take lanes in one order:
//! taxpayers, runs, endpoints, and each kind by key. So two writers cannot deadlock.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, Value};

use crate::store::db::column::json;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::db::sql::{Aliased, Dialect, Join, SqlOnce};
use crate::store::lanes::leases;
use crate::store::lanes::{LaneKind, Lease, PROBE};

/// The table `found`: the lanes of the JSON list `$1`, locked unless another transaction has locked them. Each
/// element of the list is a kind and a key. The names of the kinds in descending order are the order of locks.
fn free_lanes(dialect: &dyn Dialect) -> String {
    let rows = dialect.json_elements("$1", "rows");
    let given =
        format!("(SELECT value ->> 0 AS kind, value ->> 1 AS name FROM {rows} ORDER BY 1 DESC, 2) AS given");
    let condition = "lanes.kind = given.kind AND lanes.key = given.name";
    let found = dialect.lateral_lock("FOR UPDATE SKIP LOCKED", condition);
    format!("found AS MATERIALIZED (SELECT given.kind AS kind, lanes.key AS key FROM {given} {found})")
}

/// The statement is an upsert, because PostgreSQL then looks up each lane by its key. For an update that joins `found`
/// it reads all lanes as long as there are few. It inserts nothing: the lanes that are found exist.
static LOCK_FREE: SqlOnce = SqlOnce::new(|dialect| {
    let found = free_lanes(dialect);
    format!(
        "WITH {found} INSERT INTO lanes (kind, key, epoch, version) \
         SELECT found.kind, found.key, 0, 0 FROM found WHERE TRUE \
         ON CONFLICT (kind, key) DO UPDATE SET version = lanes.version + 1 \
         RETURNING lanes.kind AS kind, lanes.key AS name, lanes.version AS version, lanes.epoch AS epoch, \
         lanes.lease_until IS NOT NULL AS is_leased"
    )
});

/// The name of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LaneName {
    pub kind: LaneKind,
    pub key: String,
}

/// The lanes that `lock_free` has locked, with their state.
#[derive(Debug, Default)]
pub struct LockedLanes(HashMap<LaneName, LockedLane>);

#[derive(Debug)]
struct LockedLane {
    version: i64,
    epoch: i64,
    is_leased: bool,
}

impl LockedLanes {
    pub fn contains(&self, lane: &LaneName) -> bool {
        self.0.contains_key(lane)
    }

    /// Returns the new version of a lane. `None` if the lane is not locked.
    pub fn version(&self, lane: &LaneName) -> Option<i64> {
        self.0.get(lane).map(|locked| locked.version)
    }

    /// True if the lane of this lease is locked and no other process has claimed it.
    pub fn is_held(&self, lease: &Lease) -> bool {
        let locked = self.0.get(&LaneName::from_lease(lease));
        locked.is_some_and(|locked| locked.is_leased && locked.epoch == lease.epoch)
    }
}

impl LaneName {
    pub fn from_lease(lease: &Lease) -> Self {
        Self { kind: lease.kind, key: lease.key.clone() }
    }
}

impl TryFrom<&QueryResult> for LaneName {
    type Error = StoreError;

    fn try_from(row: &QueryResult) -> Result<Self, StoreError> {
        let kind: String = row.try_get("", "kind")?;
        let kind = LaneKind::ALL.into_iter().find(|one| one.as_str() == kind).ok_or(StoreError::Stale)?;
        Ok(Self { kind, key: row.try_get("", "name")? })
    }
}

/// Locks these lanes for the rest of the transaction and increments their versions. Skips lanes that do not exist
/// and lanes that another transaction has locked.
pub async fn lock_free(tx: &Transaction, lanes: &[LaneName]) -> Result<LockedLanes, StoreError> {
    let mut locked = LockedLanes::default();
    for row in tx.query_all_raw(on_lanes(tx, &LOCK_FREE, lanes)).await? {
        let lane = LockedLane {
            version: row.try_get("", "version")?,
            epoch: row.try_get("", "epoch")?,
            is_leased: row.try_get("", "is_leased")?,
        };
        locked.0.insert(LaneName::try_from(&row)?, lane);
    }
    Ok(locked)
}

static LOCK_OR_LIST: SqlOnce = SqlOnce::new(|dialect| {
    let found = free_lanes(dialect);
    let rows = dialect.json_elements("$1", "rows");
    let exists = dialect.lateral_join(
        Join::Inner,
        Aliased { table: "lanes", alias: "l" },
        "l.kind = rows.value ->> 0 AND l.key = rows.value ->> 1",
    );
    format!(
        "WITH {found} SELECT l.kind AS kind, l.key AS name FROM {rows} {exists} \
         WHERE NOT EXISTS (SELECT 1 FROM found WHERE found.kind = l.kind AND found.key = l.key)"
    )
});

/// Locks these lanes for the rest of the transaction. Returns the lanes that another transaction has locked. Ignores
/// lanes that do not exist.
pub async fn lock_or_list(tx: &Transaction, lanes: &[LaneName]) -> Result<HashSet<LaneName>, StoreError> {
    // SQLite has one writer, so no other transaction has locked a lane.
    if lanes.is_empty() || tx.get_database_backend() == DbBackend::Sqlite {
        return Ok(HashSet::new());
    }
    let rows = tx.query_all_raw(on_lanes(tx, &LOCK_OR_LIST, lanes)).await?;
    rows.iter().map(LaneName::try_from).collect()
}

/// Returns the lanes of this list that a transaction has locked. Does not wait for them and locks nothing for longer
/// than this call.
pub async fn held_lanes(store: &Store, lanes: &[LaneName]) -> Result<HashSet<LaneName>, StoreError> {
    let tx = store.begin().await?;
    let held = lock_or_list(&tx, lanes).await?;
    tx.rollback().await?;
    Ok(held)
}

/// Leases that were looked at together. A lease in neither set is no longer held.
#[derive(Debug)]
pub struct Fenced {
    /// The leases that are still held, with their lanes locked for the rest of the transaction.
    pub held: HashSet<Lease>,
    /// The leases whose lanes another transaction has locked, so that their state is not known.
    pub locked: HashSet<Lease>,
}

/// Locks the lanes of these leases for the rest of the transaction, except those that another transaction has locked.
pub async fn fence_free(tx: &Transaction, kind: LaneKind, leases: &[Lease]) -> Result<Fenced, StoreError> {
    let mut held = leases::fence_unlocked(tx, kind, leases).await?;
    let rest: Vec<_> = leases.iter().filter(|lease| !held.contains(*lease)).cloned().collect();
    let names: Vec<_> = rest.iter().map(LaneName::from_lease).collect();
    let names_locked = lock_or_list(tx, &names).await?;
    let (locked, free): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|lease| names_locked.contains(&LaneName::from_lease(lease)));
    // These lanes are locked by now: they were lost, or became free since they were skipped.
    held.extend(leases::fence_all(tx, kind, &free).await?);
    Ok(Fenced { held, locked: locked.into_iter().collect() })
}

fn on_lanes(tx: &Transaction, sql: &SqlOnce, lanes: &[LaneName]) -> Statement {
    let backend = tx.get_database_backend();
    // A set, because PostgreSQL rejects an upsert of the same key twice.
    let given: BTreeSet<_> = lanes.iter().map(|lane| (lane.kind.as_str(), &lane.key)).collect();
    Statement::from_sql_and_values(backend, sql.get(backend), [json(&given).into()])
}

static CLAIM_IDLE: SqlOnce = SqlOnce::new(|dialect| {
    let now = dialect.clock();
    let idle = format!(
        " AND lanes.lease_until IS NULL \
         AND (lanes.next_step IS NULL OR lanes.next_step <> '{PROBE}' OR lanes.next_due_at <= {now})"
    );
    let rows = dialect.json_elements("$2", "rows");
    let given = format!("(SELECT value ->> 0 AS name FROM {rows} ORDER BY 1) AS given");
    let condition = format!("lanes.kind = $1 AND lanes.key = given.name{idle}");
    let found = dialect.lateral_lock("FOR UPDATE", &condition);
    format!(
        "WITH found AS MATERIALIZED (SELECT lanes.key AS key FROM {given} {found}) \
         INSERT INTO lanes (kind, key, epoch, version) SELECT $1, found.key, 0, 0 FROM found WHERE TRUE \
         ON CONFLICT (kind, key) DO UPDATE SET owner = $3, epoch = lanes.epoch + 1, lease_until = {now} + $4, \
         next_due_at = {now} RETURNING lanes.key AS name, lanes.epoch AS epoch"
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

/// The lanes that become due at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wake {
    All,
    /// Because of new work: a parked lane keeps its due time.
    NotParked,
    /// At the start of a process: a lane with a lease, even an expired one, keeps its due time. If its holder crashed,
    /// the next claim has to wait until that time.
    WithoutHolder,
}

static WAKE: SqlOnce = SqlOnce::new(|dialect| {
    let now = dialect.clock();
    let rows = dialect.json_elements("$2", "rows");
    let keeps = format!(
        "($3 = 'not-parked' AND lanes.next_step = '{PROBE}' AND lanes.next_due_at > {now}) \
         OR ($3 = 'without-holder' AND lanes.lease_until IS NOT NULL)"
    );
    format!(
        "INSERT INTO lanes (kind, key, epoch, version, next_due_at) \
         SELECT $1, value ->> 0, 0, 0, {now} FROM {rows} WHERE TRUE ORDER BY 2 ON CONFLICT (kind, key) \
         DO UPDATE SET next_due_at = CASE WHEN {keeps} THEN lanes.next_due_at ELSE {now} END \
         RETURNING lanes.key AS name, (lease_until IS NOT NULL AND lease_until >= {now}) AS is_held"
    )
});

/// Makes lanes due now. Creates the lanes that do not exist. Returns the keys of the lanes that are held. All these
/// lanes stay locked until the transaction ends, so no holder can release its lane without seeing the new work.
pub async fn wake(
    tx: &Transaction,
    kind: LaneKind,
    keys: &[String],
    which: Wake,
) -> Result<HashSet<String>, StoreError> {
    let mut held = HashSet::new();
    if keys.is_empty() {
        return Ok(held);
    }
    let which = match which {
        Wake::All => "all",
        Wake::NotParked => "not-parked",
        Wake::WithoutHolder => "without-holder",
    };
    for row in tx.query_all_raw(statement(tx, &WAKE, kind, keys, [which.into()])).await? {
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
    use crate::store::lanes::leases::LaneRelease;
    use crate::store::testing::{claim_due, query_plan, stores};

    const LEASE: Duration = Duration::from_secs(30);

    fn lane(kind: LaneKind, key: &str) -> LaneName {
        LaneName { kind, key: key.to_owned() }
    }

    #[tokio::test]
    async fn a_lane_that_another_transaction_has_locked_is_left_out() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["1", "2", "3"].map(str::to_owned);
            let names = keys.each_ref().map(|key| lane(LaneKind::Taxpayer, key));
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Taxpayer, &keys[..2], Wake::All).await.unwrap();
            lanes::wake(&tx, LaneKind::Run, &keys[..1], Wake::All).await.unwrap();
            tx.commit().await.unwrap();
            for version in 1..3 {
                let tx = store.begin().await.unwrap();
                let locked = lock_free(&tx, &names).await.unwrap();
                let versions = names.each_ref().map(|lane| locked.version(lane));
                assert_eq!(versions, [Some(version), Some(version), None], "the third does not exist");
                assert!(!locked.contains(&lane(LaneKind::Run, "1")), "a lane of another kind is not locked");
                tx.commit().await.unwrap();
            }
            if store.backend() == DbBackend::Postgres {
                let other = store.begin().await.unwrap();
                lanes::lock(&other, LaneKind::Taxpayer, "1").await.unwrap();
                let tx = store.begin().await.unwrap();
                let locked = lock_free(&tx, &names).await.unwrap();
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
            let claim: [Value; 4] = ["endpoint".into(), "[[\"1\"]]".into(), "me".into(), 1_i64.into()];
            let statements = [
                (&LOCK_FREE, lanes.to_vec()),
                (&LOCK_OR_LIST, lanes.to_vec()),
                (&CLAIM_IDLE, claim.to_vec()),
            ];
            for (sql, values) in statements {
                let steps = query_plan(store, sql.get(store.backend()), values).await;
                let scans = steps.iter().filter(|step| step.contains("using lanes_pkey")).count();
                let lookups = steps.iter().filter(|step| step.contains("Index Cond")).count();
                assert!(scans > 0 && scans == lookups, "{steps:#?}");
            }
        }
    }

    #[tokio::test]
    async fn a_locked_lane_is_held_by_the_lease_of_its_last_claim_only() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Run, &["7/a".to_owned()], Wake::All).await.unwrap();
            tx.commit().await.unwrap();
            let lease = claim_due(store, LaneKind::Run, "me", LEASE, 1).await.unwrap().remove(0);
            let older = Lease { epoch: lease.epoch - 1, ..lease.clone() };
            let names = [LaneName::from_lease(&lease)];
            let tx = store.begin().await.unwrap();
            let locked = lock_free(&tx, &names).await.unwrap();
            assert!(locked.is_held(&lease) && !locked.is_held(&older));
            leases::release(&tx, &[LaneRelease::new(&lease, None)]).await.unwrap();
            assert!(!lock_free(&tx, &names).await.unwrap().is_held(&lease), "it is released");
        }
    }

    #[tokio::test]
    async fn lanes_that_others_have_locked_are_listed_and_the_rest_is_locked() {
        // PostgreSQL only: SQLite has one writer.
        for test in stores().await.into_iter().skip(1) {
            let store = &test.store;
            let keys = ["1", "2"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Run, &keys, Wake::All).await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, Wake::All).await.unwrap();
            tx.commit().await.unwrap();
            let other = store.begin().await.unwrap();
            lanes::lock(&other, LaneKind::Endpoint, "2").await.unwrap();
            let wanted = [
                lane(LaneKind::Endpoint, "1"),
                lane(LaneKind::Endpoint, "2"),
                lane(LaneKind::Endpoint, "3"),
                lane(LaneKind::Run, "2"),
            ];
            let tx = store.begin().await.unwrap();
            let held = lock_or_list(&tx, &wanted).await.unwrap();
            assert_eq!(held, HashSet::from([wanted[1].clone()]), "and the third does not exist");
            let third = store.begin().await.unwrap();
            let names = ["1", "2"].map(|key| lane(LaneKind::Run, key));
            let free = lock_free(&third, &names).await.unwrap();
            assert_eq!(names.each_ref().map(|lane| free.contains(lane)), [true, false]);
            other.rollback().await.unwrap();
            assert!(lock_or_list(&tx, &wanted).await.unwrap().is_empty(), "all are free");
        }
    }

    #[tokio::test]
    async fn a_fence_skips_the_lanes_that_others_have_locked() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["1", "2", "3"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, Wake::All).await.unwrap();
            tx.commit().await.unwrap();
            let mut leases = claim_due(store, LaneKind::Endpoint, "me", LEASE, 9).await.unwrap();
            leases.sort_by(|a, b| a.key.cmp(&b.key));
            leases[2].epoch -= 1;
            let set = |leases: &[Lease]| leases.iter().cloned().collect::<HashSet<_>>();
            let tx = store.begin().await.unwrap();
            let fenced = fence_free(&tx, LaneKind::Endpoint, &leases).await.unwrap();
            assert_eq!((fenced.held, fenced.locked), (set(&leases[..2]), set(&[])), "the third is lost");
            tx.rollback().await.unwrap();
            if store.backend() == DbBackend::Postgres {
                let other = store.begin().await.unwrap();
                lanes::lock(&other, LaneKind::Endpoint, "1").await.unwrap();
                let tx = store.begin().await.unwrap();
                let fenced = fence_free(&tx, LaneKind::Endpoint, &leases).await.unwrap();
                assert_eq!((fenced.held, fenced.locked), (set(&leases[1..2]), set(&leases[..1])));
            }
        }
    }

    #[tokio::test]
    async fn a_lane_that_is_parked_is_not_woken_before_its_time() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["7".to_owned()];
            let claim = async || claim_due(store, LaneKind::Endpoint, "me", LEASE, 9).await.unwrap();
            let tx = store.begin().await.unwrap();
            let is_held = !wake(&tx, LaneKind::Endpoint, &keys, Wake::NotParked).await.unwrap().is_empty();
            assert!(!is_held, "nobody holds a lane that is new");
            tx.commit().await.unwrap();
            let lease = claim().await.remove(0);
            let tx = store.begin().await.unwrap();
            let is_held = !wake(&tx, LaneKind::Endpoint, &keys, Wake::NotParked).await.unwrap().is_empty();
            assert!(is_held, "it was claimed");
            let rest = LaneRelease {
                next_step: Some(lanes::PROBE),
                ..LaneRelease::new(&lease, Some(Duration::from_mins(1)))
            };
            leases::release(&tx, &[rest]).await.unwrap();
            let is_held = !wake(&tx, LaneKind::Endpoint, &keys, Wake::NotParked).await.unwrap().is_empty();
            assert!(!is_held, "it was released");
            tx.commit().await.unwrap();
            assert_eq!(claim().await, []);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, Wake::All).await.unwrap();
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
                let release =
                    LaneRelease { next_step, ..LaneRelease::new(&lease, Some(Duration::from_mins(1))) };
                let tx = store.begin().await.unwrap();
                leases::release(&tx, &[release]).await.unwrap();
                tx.commit().await.unwrap();
            };
            assert_eq!(take().await, None, "there is no such lane");
            let tx = store.begin().await.unwrap();
            wake(&tx, LaneKind::Endpoint, &keys, Wake::NotParked).await.unwrap();
            tx.commit().await.unwrap();
            let lease = take().await.unwrap();
            assert_eq!((lease.key.as_str(), take().await), ("7", None), "it is held");
            rest(lease, None).await;
            let lease = take().await.expect("a lane that waits for another attempt has new work now");
            rest(lease, Some(lanes::PROBE)).await;
            assert_eq!(take().await, None, "it is parked");
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, Wake::All).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(take().await.unwrap().epoch, 3);
        }
    }
}
