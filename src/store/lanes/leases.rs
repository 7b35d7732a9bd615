//! Operations on many lanes in one statement: fence, release, renew and count. Operations on one lane are in
//! `lanes`.

use std::collections::HashSet;
use std::time::Duration;

use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ConnectionTrait, DbBackend, Statement, Value};

use crate::domain::kernel::crash::CRASHES_MAX;
use crate::store::db::column::json;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::db::sql::{self, Aliased, Join, dialect};
use crate::store::lanes::{self, LaneKind, Lease};

/// The condition that a lane is in the list `given` and still held with the listed epoch. Two operators prevent
/// bad query plans: with a bare column instead of `->>`, SQLite would index the list and scan all lanes;
/// without the `+`, both databases would search all held lanes.
const IS_GIVEN: &str = "lanes.kind = $1 AND lanes.key = given.value ->> 0 \
    AND lanes.epoch = CAST(given.value ->> 1 AS BIGINT) AND +lanes.lease_until IS NOT NULL";

/// How to release a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRelease {
    pub lease: Lease,
    /// The lane is due again after this time; without it only new work makes the lane due.
    pub delay: Option<Duration>,
    /// The step that the lane needs next, so that claims skip the lane while that step is blocked.
    pub next_step: Option<&'static str>,
    pub next_claim: NextClaim,
}

/// How a released lane is claimed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextClaim {
    /// Like any other lane.
    Ordinary,
    /// Alone (`Ended::Isolated`), because its work was in flight at two crashes.
    Alone,
    /// Alone, too. The lane keeps its next step, and its count of crashes until its work ends without a crash.
    AloneAndCounted,
}

impl LaneRelease {
    pub fn new(lease: &Lease, delay: Option<Duration>) -> Self {
        Self { lease: lease.clone(), delay, next_step: None, next_claim: NextClaim::Ordinary }
    }

    /// The columns of `given`: key, epoch, delay, next step, the end of the lease, and 1 if its crashes stay counted.
    fn row(&self) -> (&str, i64, Option<i64>, Option<&str>, Option<i64>, u8) {
        let delay = self.delay.map(|delay| i64::try_from(delay.as_micros()).unwrap_or(i64::MAX / 4));
        let (lease_until, keeps_crashes) = match self.next_claim {
            NextClaim::Ordinary => (None, 0),
            NextClaim::Alone => (Some(lanes::ABANDONED), 0),
            NextClaim::AloneAndCounted => (Some(lanes::ABANDONED), 1),
        };
        (&self.lease.key, self.lease.epoch, delay, self.next_step, lease_until, keeps_crashes)
    }
}

/// Locks the lanes of these leases for the rest of the transaction. Returns the leases that are still held. It
/// locks the lanes ordered by key, so that two writers cannot deadlock.
pub async fn fence_all(
    tx: &Transaction,
    kind: LaneKind,
    leases: &[Lease],
) -> Result<HashSet<Lease>, StoreError> {
    lock_held(tx, kind, leases, "FOR UPDATE").await
}

/// Does the same as `fence_all`, but skips the lanes that another transaction has locked.
pub(super) async fn fence_unlocked(
    tx: &Transaction,
    kind: LaneKind,
    leases: &[Lease],
) -> Result<HashSet<Lease>, StoreError> {
    lock_held(tx, kind, leases, "FOR UPDATE SKIP LOCKED").await
}

async fn lock_held(
    tx: &Transaction,
    kind: LaneKind,
    leases: &[Lease],
    lock: &str,
) -> Result<HashSet<Lease>, StoreError> {
    if leases.is_empty() {
        return Ok(HashSet::new());
    }
    let backend = tx.get_database_backend();
    let given: Vec<_> = leases.iter().map(|lease| (&lease.key, lease.epoch)).collect();
    let values: [Value; 2] = [kind.as_str().into(), json(&given).into()];
    let sql = lock_given(backend, lock);
    let rows = tx.query_all_raw(Statement::from_sql_and_values(backend, sql, values)).await?;
    rows.iter()
        .map(|row| Ok(Lease { kind, key: row.try_get("", "name")?, epoch: row.try_get("", "epoch")? }))
        .collect()
}

/// Releases lanes of one kind. Fails with `Stale` if another process has claimed one of them.
pub async fn release(tx: &Transaction, releases: &[LaneRelease]) -> Result<(), StoreError> {
    let Some(first) = releases.first() else { return Ok(()) };
    let backend = tx.get_database_backend();
    let given: Vec<_> = releases.iter().map(LaneRelease::row).collect();
    let values: [Value; 2] = [first.lease.kind.as_str().into(), json(&given).into()];
    let statement = Statement::from_sql_and_values(backend, release_sql(backend), values);
    let rows = tx.execute_raw(statement).await?.rows_affected();
    if usize::try_from(rows) == Ok(releases.len()) { Ok(()) } else { Err(StoreError::Stale) }
}

/// Renews the leases in this list that are still held. The first statement skips lanes that a transaction has
/// locked. Each of those lanes is then renewed in a transaction of its own, which holds no other lock: so it
/// cannot deadlock with a transaction that locks lanes in another order.
pub async fn renew(
    store: &Store,
    kind: LaneKind,
    leases: &[Lease],
    lease: Duration,
) -> Result<(), StoreError> {
    if leases.is_empty() {
        return Ok(());
    }
    let given: Vec<_> = leases.iter().map(|lease| (&lease.key, lease.epoch)).collect();
    let values: [Value; 2] = [kind.as_str().into(), json(&given).into()];
    let sql = prolong(store.backend(), lease);
    let tx = store.begin().await?;
    let rows = tx.query_all_raw(Statement::from_sql_and_values(store.backend(), sql, values)).await?;
    tx.commit().await?;
    let prolonged: HashSet<String> =
        rows.iter().map(|row| row.try_get("", "name")).collect::<Result<_, _>>()?;
    for locked in leases.iter().filter(|lease| !prolonged.contains(&lease.key)) {
        lanes::prolong(store, locked, lease).await?;
    }
    Ok(())
}

/// The numbers of lanes of one kind that are due, leased and held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneCount {
    pub kind: LaneKind,
    pub due: i64,
    pub leased: i64,
    /// The number of lanes that are quarantined, because their holders crashed too often.
    pub held_back: i64,
}

/// Counts the lanes of each kind that are due, leased and held back. The query reads only lanes with a due
/// time, since most lanes have none: they belong to idle taxpayers and ended runs.
pub async fn counts(store: &Store) -> Result<[LaneCount; LaneKind::ALL.len()], StoreError> {
    let now = sql::now(store.backend());
    let number = |condition: Expr| {
        let one = Expr::case(condition, 1_i64).finally(0_i64);
        Expr::expr(Expr::expr(one).sum()).cast_as("BIGINT")
    };
    let held = Expr::col("lease_until").is_not_null().and(Expr::col("lease_until").gte(now.clone()));
    let due = Expr::col("next_due_at").lte(now);
    let held_back = Expr::col("crashes").gte(i64::from(CRASHES_MAX));
    let statement = Query::select()
        .column("kind")
        .expr_as(number(due), "due")
        .expr_as(number(held), "leased")
        .expr_as(number(held_back), "held_back")
        .from("lanes")
        .and_where(Expr::col("next_due_at").is_not_null())
        .group_by_col("kind")
        .to_owned();
    let mut counts = LaneKind::ALL.map(|kind| LaneCount { kind, due: 0, leased: 0, held_back: 0 });
    for row in store.reader().query_all(&statement).await? {
        let kind: String = row.try_get("", "kind")?;
        for count in counts.iter_mut().filter(|count| count.kind.as_str() == kind) {
            (count.due, count.leased) = (row.try_get("", "due")?, row.try_get("", "leased")?);
            count.held_back = row.try_get("", "held_back")?;
        }
    }
    Ok(counts)
}

/// Which leases end at once.
#[derive(Debug, Clone, Copy)]
pub enum Expire<'a> {
    /// Only for a process that is alone on the database.
    All,
    /// Those of a process that is certainly gone.
    OwnedBy(&'a str),
    /// Those that end more than this time from now, because they were taken before the clock was set back. A lease that
    /// was taken or renewed since then ends earlier, so a live holder keeps its lease.
    Beyond(Duration),
}

/// Expires leases. The next claims count their holders as crashed. Returns the number of expired leases.
pub async fn expire(store: &Store, which: Expire<'_>) -> Result<u64, StoreError> {
    let lease_until = Expr::col("lease_until");
    let ends = match which {
        Expire::All => lease_until.is_not_null(),
        Expire::OwnedBy(owner) => lease_until.is_not_null().and(Expr::col("owner").eq(owner)),
        Expire::Beyond(longest) => lease_until.gt(lanes::later(&sql::now(store.backend()), longest)),
    };
    let statement =
        Query::update().table("lanes").value("lease_until", lanes::ABANDONED).and_where(ends).to_owned();
    let tx = store.begin().await?;
    let expired = tx.execute(&statement).await?.rows_affected();
    tx.commit().await?;
    Ok(expired)
}

/// Releases all lanes that this process holds, at a clean shutdown. The next claims count no crash.
pub async fn release_owned_by(store: &Store, owner: &str) -> Result<(), StoreError> {
    let statement = Query::update()
        .table("lanes")
        .value("owner", Option::<String>::None)
        .value("lease_until", Option::<i64>::None)
        .value("epoch", Expr::col("epoch").add(1_i64))
        .value("next_due_at", sql::now(store.backend()))
        .value("working_on", Option::<String>::None)
        .and_where(Expr::col("owner").eq(owner))
        .and_where(Expr::col("lease_until").is_not_null())
        .to_owned();
    let tx = store.begin().await?;
    tx.execute(&statement).await?;
    tx.commit().await
}

fn prolong(backend: DbBackend, lease: Duration) -> String {
    format!(
        "WITH free AS MATERIALIZED ({}) UPDATE lanes SET lease_until = {} + {} FROM free \
         WHERE lanes.kind = $1 AND lanes.key = free.name RETURNING lanes.key AS name",
        lock_given(backend, "FOR UPDATE SKIP LOCKED"),
        dialect(backend).clock(),
        lease.as_micros(),
    )
}

/// Builds the statement that releases the lanes of the list `given`, ordered by key. It is an upsert of lanes that exist,
/// because PostgreSQL then looks up each lane by its key; for an update it could scan all lanes of the kind.
fn release_sql(backend: DbBackend) -> String {
    let dialect = dialect(backend);
    let due = format!("{} + CAST(given.value ->> 2 AS BIGINT)", dialect.clock());
    let released = dialect.lateral_join(
        Join::Inner,
        Aliased { table: "lanes", alias: "released" },
        "released.kind = $1 AND released.key = given.value ->> 0",
    );
    let stays_counted = "CASE CAST(given.value ->> 5 AS INTEGER) WHEN 1 THEN";
    format!(
        "WITH {} INSERT INTO lanes \
         (kind, key, epoch, version, next_due_at, next_step, lease_until, crashes, working_on) \
         SELECT $1, released.key, CAST(given.value ->> 1 AS BIGINT), 0, {due}, \
         {stays_counted} released.next_step ELSE given.value ->> 3 END, CAST(given.value ->> 4 AS BIGINT), \
         {stays_counted} released.crashes ELSE 0 END, {stays_counted} released.working_on END \
         FROM given {released} WHERE TRUE ORDER BY 2 \
         ON CONFLICT (kind, key) DO UPDATE SET owner = NULL, lease_until = excluded.lease_until, \
         next_step = excluded.next_step, next_due_at = excluded.next_due_at, crashes = excluded.crashes, \
         working_on = excluded.working_on WHERE lanes.epoch = excluded.epoch",
        given_table(backend)
    )
}

/// Locks the lanes of the list `given` that are still held, ordered by key. The lateral join makes PostgreSQL
/// look up each lane by its key, whatever sizes it estimates for the list and the table.
fn lock_given(backend: DbBackend, lock: &str) -> String {
    let found = dialect(backend).lateral_lock(lock, IS_GIVEN);
    let ordered = "(SELECT value FROM given ORDER BY value ->> 0) AS given";
    format!("WITH {} SELECT lanes.key AS name, lanes.epoch FROM {ordered} {found}", given_table(backend))
}

/// The table `given`: the JSON list in the second parameter. Each element is a list that begins with key and epoch.
fn given_table(backend: DbBackend) -> String {
    let rows = dialect(backend).json_elements("$2", "rows");
    format!("given AS MATERIALIZED (SELECT value FROM {rows})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lanes::Wake;
    use crate::store::testing::{claim_due, query_plan, stores};

    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn held_lanes_are_fenced_and_released_together() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["1", "2", "3"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, Wake::All).await.unwrap();
            tx.commit().await.unwrap();
            let mut leases = claim_due(store, LaneKind::Endpoint, "me", LEASE, 9).await.unwrap();
            leases.sort_by(|a, b| a.key.cmp(&b.key));
            leases[2].epoch -= 1;
            let tx = store.begin().await.unwrap();
            let held = fence_all(&tx, LaneKind::Endpoint, &leases).await.unwrap();
            assert_eq!(held, leases[..2].iter().cloned().collect(), "the third is another's");
            let due = LaneRelease::new(&leases[0], Some(Duration::ZERO));
            let idle = LaneRelease::new(&leases[1], None);
            release(&tx, &[due, idle]).await.unwrap();
            tx.commit().await.unwrap();
            let never_made = Lease { key: "4".to_owned(), ..leases[0].clone() };
            for lease in [&leases[2], &never_made] {
                let tx = store.begin().await.unwrap();
                let again = release(&tx, &[LaneRelease::new(lease, Some(Duration::ZERO))]).await;
                assert!(matches!(again, Err(StoreError::Stale)), "{lease:?}: {again:?}");
            }
            let again = claim_due(store, LaneKind::Endpoint, "me", LEASE, 9).await.unwrap();
            assert_eq!(again.iter().map(|lease| lease.key.as_str()).collect::<Vec<_>>(), ["1"]);
        }
    }

    #[tokio::test]
    async fn the_leases_of_a_process_that_is_gone_are_taken_over_at_once_and_counted() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &["1", "2"].map(str::to_owned), Wake::All).await.unwrap();
            tx.commit().await.unwrap();
            let gone = claim_due(store, LaneKind::Endpoint, "gone", LEASE, 1).await.unwrap();
            claim_due(store, LaneKind::Endpoint, "alive", LEASE, 1).await.unwrap();
            expire(store, Expire::OwnedBy("gone")).await.unwrap();
            let claimed = lanes::claim_where(
                store,
                LaneKind::Endpoint,
                "new",
                LEASE,
                lanes::free(LaneKind::Endpoint, &sql::now(store.backend())),
            )
            .await
            .unwrap();
            let taken: Vec<_> = claimed.iter().map(|lane| (lane.lease.key.as_str(), lane.crashes)).collect();
            assert_eq!(taken, [(gone[0].key.as_str(), 1)]);
        }
    }

    #[tokio::test]
    async fn only_a_lease_that_is_still_held_is_prolonged() {
        for test in stores().await {
            let store = &test.store;
            let short = Duration::from_millis(1);
            let keys = ["1", "2", "3", "4"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, Wake::All).await.unwrap();
            tx.commit().await.unwrap();
            let mut leases = claim_due(store, LaneKind::Endpoint, "me", short, 9).await.unwrap();
            leases.sort_by(|a, b| a.key.cmp(&b.key));
            let tx = store.begin().await.unwrap();
            release(&tx, &[LaneRelease::new(&leases[1], Some(Duration::ZERO))]).await.unwrap();
            tx.commit().await.unwrap();
            leases[2].epoch -= 1;
            renew(store, LaneKind::Endpoint, &leases[..3], LEASE).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
            let again = claim_due(store, LaneKind::Endpoint, "you", LEASE, 9).await.unwrap();
            let mut again: Vec<_> = again.into_iter().map(|lease| lease.key).collect();
            again.sort();
            assert_eq!(again, ["2", "3", "4"], "released; held by another; not in the list");
        }
    }

    #[tokio::test]
    async fn renewals_do_not_deadlock_with_locks_in_another_order() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["1", "2"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Run, &keys, Wake::All).await.unwrap();
            tx.commit().await.unwrap();
            let short = Duration::from_millis(1);
            let mut leases = claim_due(store, LaneKind::Run, "me", short, 9).await.unwrap();
            leases.sort_by(|a, b| a.key.cmp(&b.key));
            let tx = store.begin().await.unwrap();
            lanes::fence(&tx, &leases[1]).await.unwrap();
            let renewing = renew(store, LaneKind::Run, &leases, LEASE);
            let other = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                lanes::fence(&tx, &leases[0]).await.unwrap();
                tx.commit().await.unwrap();
            };
            let (renewed, ()) = tokio::join!(renewing, other);
            renewed.unwrap();
            let again = claim_due(store, LaneKind::Run, "you", LEASE, 9).await.unwrap();
            assert_eq!(again, [], "both are prolonged");
        }
    }

    async fn assert_found_by_name(store: &Store) {
        let backend = store.backend();
        let by_name = match backend {
            DbBackend::Postgres => "using lanes_pkey",
            _ => "USING INDEX sqlite_autoindex_lanes_1 (kind=? AND key=?)",
        };
        for sql in [lock_given(backend, "FOR UPDATE"), prolong(backend, LEASE), release_sql(backend)] {
            let values: [Value; 2] = ["endpoint".into(), "[]".into()];
            let steps = query_plan(store, &sql, values).await;
            assert!(steps.iter().any(|step| step.contains(by_name)), "{steps:#?}");
        }
    }

    #[tokio::test]
    async fn lanes_are_found_by_their_names_however_few_there_are_or_were_when_they_were_counted() {
        for test in stores().await {
            let keys: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
            let tx = test.store.begin().await.unwrap();
            for kind in [LaneKind::Endpoint, LaneKind::Run, LaneKind::Taxpayer] {
                lanes::wake(&tx, kind, &keys[..1], Wake::All).await.unwrap();
            }
            tx.execute_unprepared("ANALYZE lanes").await.unwrap();
            tx.commit().await.unwrap();
            assert_found_by_name(&test.store).await;
            let tx = test.store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, Wake::All).await.unwrap();
            tx.commit().await.unwrap();
            assert_found_by_name(&test.store).await;
        }
    }
}
