//! Leases of lanes. A lane is a row that lets only one worker at a time do a piece of work: the holder of its lease.
//! The holder checks, renews and releases the lease. If its process shuts down or crashes, `end_leases` ends the lease.

use std::collections::HashSet;
use std::time::Duration;

use database::column::json;
use database::sql::{self, AliasedTable, Join, dialect};
use database::{StoreError, Transaction};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{Condition, ConnectionTrait, DbBackend, Statement, Value};

use crate::store::Store;
use crate::store::lanes::lock::{IfLocked, lock_keeping_versions};
use crate::store::lanes::{ABANDONED_LEASE_UNTIL, LOCKED_LANES, LaneName, Lease, time_after};

/// The SQL condition that a lane is in the list `given` and still held with the epoch in the list. Two operators
/// prevent bad query plans: without `->>`, SQLite would index the list and scan all lanes; without the `+`, both
/// databases would search all held lanes.
const IS_GIVEN: &str = "lanes.kind = $1 AND lanes.key = given.value ->> 0 \
    AND lanes.epoch = CAST(given.value ->> 1 AS BIGINT) AND +lanes.lease_until IS NOT NULL";

/// An instruction to release a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneRelease {
    pub lease: Lease,
    /// The lane is due again after this time. If it is `None`, only new work makes the lane due.
    pub delay: Option<Duration>,
    /// The step that the lane's work needs next. Claims skip the lane while this step is blocked.
    pub next_step: Option<&'static str>,
    pub next_claim: NextClaim,
}

/// The way in which a released lane is claimed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextClaim {
    /// Claim it like any other lane.
    Ordinary,
    /// Claim it like any other lane, at its old place in the queue: it keeps the due time that it had before the lease.
    InPlace,
    /// Claim it alone (`LanesWithEndedLease::Isolated`), because its work was in flight at two crashes.
    Alone,
    /// Claim it alone, too, but keep the lane's next step and, until its work ends without a crash, its count of
    /// crashes.
    AloneAndCounted,
    /// Never claim it again: the lane is deleted.
    Never,
}

impl LaneRelease {
    pub fn new(lease: &Lease, delay: Option<Duration>) -> Self {
        Self {
            lease: lease.clone(),
            delay,
            next_step: None,
            next_claim: NextClaim::Ordinary,
        }
    }

    /// Returns the row of the table `given`: key, epoch, delay, next step, end of the lease, 1 if the lane's count of
    /// crashes stays, and 1 if the lane keeps its old due time.
    fn to_parameter_row(&self) -> (&str, i64, Option<i64>, Option<&str>, Option<i64>, u8, u8) {
        let delay = self
            .delay
            .map(|delay| i64::try_from(delay.as_micros()).unwrap_or(i64::MAX / 4));
        let (lease_until, keeps_crashes) = match self.next_claim {
            NextClaim::Ordinary | NextClaim::InPlace | NextClaim::Never => (None, 0),
            NextClaim::Alone => (Some(ABANDONED_LEASE_UNTIL), 0),
            NextClaim::AloneAndCounted => (Some(ABANDONED_LEASE_UNTIL), 1),
        };
        (
            &self.lease.key,
            self.lease.epoch,
            delay,
            self.next_step,
            lease_until,
            keeps_crashes,
            u8::from(self.next_claim == NextClaim::InPlace),
        )
    }
}

/// The result of `fence`. A lease that is in neither set is no longer held.
#[derive(Debug, Default)]
pub struct FencedLeases {
    /// The leases that are still held, with their lanes locked for the rest of the transaction.
    pub held: HashSet<Lease>,
    /// The leases whose lanes another transaction has locked, so that it is not known whether they are still held.
    pub skipped: HashSet<Lease>,
}

impl FencedLeases {
    /// Fails with `Stale` if a lease is no longer held.
    pub fn require_held(&self, lease: &Lease) -> Result<(), StoreError> {
        if self.held.contains(lease) {
            Ok(())
        } else {
            Err(StoreError::Stale)
        }
    }
}

/// Locks the lanes of these leases, which must be of one kind, for the rest of the transaction. Until the transaction
/// ends, nobody else can claim or release a lane whose lease is still held.
pub async fn fence(
    tx: &Transaction,
    leases: &[Lease],
    if_taken: IfLocked,
) -> Result<FencedLeases, StoreError> {
    let held = lock_held_lanes(tx, leases, if_taken).await?;
    if if_taken == IfLocked::Await {
        return Ok(FencedLeases {
            held,
            skipped: HashSet::new(),
        });
    }
    let mut fenced = FencedLeases {
        held,
        skipped: HashSet::new(),
    };
    let rest: Vec<_> = leases
        .iter()
        .filter(|lease| !fenced.held.contains(*lease))
        .collect();
    let names: Vec<_> = rest.iter().map(|lease| LaneName::from(*lease)).collect();
    let names_skipped = lock_keeping_versions(tx, &names).await?;
    let mut free = Vec::new();
    for lease in rest {
        if names_skipped.contains(&LaneName::from(lease)) {
            fenced.skipped.insert(lease.clone());
        } else {
            free.push(lease.clone());
        }
    }
    // These lanes were neither locked as held nor skipped. Either their leases were lost, or another transaction
    // unlocked them after the first statement, and this transaction has locked them now.
    fenced
        .held
        .extend(lock_held_lanes(tx, &free, IfLocked::Await).await?);
    Ok(fenced)
}

async fn lock_held_lanes(
    tx: &Transaction,
    leases: &[Lease],
    if_taken: IfLocked,
) -> Result<HashSet<Lease>, StoreError> {
    let Some(kind) = leases.first().map(|lease| lease.kind) else {
        return Ok(HashSet::new());
    };
    let rows = tx
        .query_all_raw(statement_on_leases(
            tx,
            lock_held_lanes_sql(tx.get_database_backend(), if_taken),
            leases,
        ))
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Lease {
                kind,
                key: row.try_get("", "name")?,
                epoch: row.try_get("", "epoch")?,
            })
        })
        .collect()
}

/// Releases lanes of one kind. Fails with `Stale` if one of the leases is no longer held.
pub async fn release(tx: &Transaction, releases: &[LaneRelease]) -> Result<(), StoreError> {
    let Some(first) = releases.first() else {
        return Ok(());
    };
    let backend = tx.get_database_backend();
    let given: Vec<_> = releases.iter().map(LaneRelease::to_parameter_row).collect();
    let kind = first.lease.kind.as_str();
    let values: [Value; 2] = [kind.into(), json(&given).into()];
    let statement = Statement::from_sql_and_values(backend, release_sql(backend), values);
    let rows = tx.execute_raw(statement).await?.rows_affected();
    if usize::try_from(rows) != Ok(releases.len()) {
        return Err(StoreError::Stale);
    }
    for gone in releases
        .iter()
        .filter(|release| release.next_claim == NextClaim::Never)
    {
        tx.execute(
            Query::delete()
                .from_table("lanes")
                .cond_where(is_held(&gone.lease)),
        )
        .await?;
    }
    Ok(())
}

fn is_held(lease: &Lease) -> Condition {
    Condition::all()
        .add(Expr::col("kind").eq(lease.kind.as_str()))
        .add(Expr::col("key").eq(lease.key.as_str()))
        .add(Expr::col("epoch").eq(lease.epoch))
}

/// Renews those of these leases that are still held. All must be of one kind. The first statement skips lanes that
/// another transaction has locked. Each of these is then renewed in its own transaction, which holds no other lock. So
/// it cannot deadlock with a transaction that locks lanes in another order.
pub async fn renew(store: &Store, leases: &[Lease], duration: Duration) -> Result<(), StoreError> {
    if leases.is_empty() {
        return Ok(());
    }
    let prolonged = extend_held_leases(store, leases, duration, IfLocked::Skip).await?;
    for rest in leases
        .iter()
        .filter(|lease| !prolonged.contains(&lease.key))
    {
        extend_held_leases(store, std::slice::from_ref(rest), duration, IfLocked::Await).await?;
    }
    Ok(())
}

/// Extends those of these leases that are still held, and returns the keys of their lanes.
async fn extend_held_leases(
    store: &Store,
    leases: &[Lease],
    duration: Duration,
    if_taken: IfLocked,
) -> Result<HashSet<String>, StoreError> {
    let tx = store.begin().await?;
    let sql = extend_held_leases_sql(store.backend(), duration, if_taken);
    let rows = tx
        .query_all_raw(statement_on_leases(&tx, sql, leases))
        .await?;
    tx.commit().await?;
    rows.iter()
        .map(|row| Ok(row.try_get("", "name")?))
        .collect()
}

/// Information that the holder of a lane writes to the lane's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneNote<'a> {
    /// The piece of work that is in progress; `None` if there is none. If the process crashes, the next holder learns
    /// it.
    WorkingOn(Option<&'a str>),
    /// The lane's crashes have been added to the counts of its pieces of work, so the count of the lane is set to zero.
    CrashesCounted,
}

/// Writes a note to the row of a lane. Fails with `Stale` if the lease is no longer held.
pub async fn write_note(
    tx: &Transaction,
    lease: &Lease,
    note: LaneNote<'_>,
) -> Result<(), StoreError> {
    let mut statement = Query::update();
    match note {
        LaneNote::WorkingOn(what) => statement.value("working_on", what),
        LaneNote::CrashesCounted => statement
            .value("crashes", 0)
            .value("working_on", Option::<String>::None),
    };
    statement.table("lanes").cond_where(is_held(lease));
    let rows = tx.execute(&statement).await?.rows_affected();
    if rows == 0 {
        Err(StoreError::Stale)
    } else {
        Ok(())
    }
}

/// The leases that a call of `end_leases` ends.
#[derive(Debug, Clone, Copy)]
pub enum LeasesToEnd<'a> {
    /// The leases of a process that shuts down in an orderly way. The next claims count no crash.
    Stopped(&'a str),
    /// The leases of a process that has certainly ended.
    Crashed(&'a str),
    /// All leases. Use this only in a process that is alone on the database.
    AllCrashed,
    /// The leases that end later than this time from now, because they were taken before the clock was set back. A
    /// holder that is alive has renewed its lease since then, so that it ends earlier and is not affected.
    Beyond(Duration),
}

/// Ends leases. Except for `Stopped`, the next claims of their lanes count a crash. Returns the number of ended leases.
pub async fn end_leases(store: &Store, which: LeasesToEnd<'_>) -> Result<u64, StoreError> {
    let now = sql::now(store.backend());
    let lease_until = Expr::col("lease_until");
    let mut statement = Query::update();
    statement.table("lanes");
    match which {
        LeasesToEnd::Stopped(owner) => statement
            .value("owner", Option::<String>::None)
            .value("epoch", Expr::col("epoch").add(1_i64))
            .value("lease_until", Option::<i64>::None)
            .value("next_due_at", now)
            .value("working_on", Option::<String>::None)
            .and_where(lease_until.is_not_null().and(Expr::col("owner").eq(owner))),
        LeasesToEnd::Crashed(owner) => statement
            .value("lease_until", ABANDONED_LEASE_UNTIL)
            .and_where(lease_until.is_not_null().and(Expr::col("owner").eq(owner))),
        LeasesToEnd::AllCrashed => statement
            .value("lease_until", ABANDONED_LEASE_UNTIL)
            .and_where(lease_until.is_not_null()),
        LeasesToEnd::Beyond(longest) => statement
            .value("lease_until", ABANDONED_LEASE_UNTIL)
            .and_where(lease_until.gt(time_after(&now, longest))),
    };
    let tx = store.begin().await?;
    let ended = tx.execute(&statement).await?.rows_affected();
    tx.commit().await?;
    Ok(ended)
}

fn statement_on_leases(tx: &Transaction, sql: String, leases: &[Lease]) -> Statement {
    let kind = leases.first().map_or("", |lease| lease.kind.as_str());
    let given: Vec<_> = leases
        .iter()
        .map(|lease| (&lease.key, lease.epoch))
        .collect();
    let values: [Value; 2] = [kind.into(), json(&given).into()];
    Statement::from_sql_and_values(tx.get_database_backend(), sql, values)
}

fn extend_held_leases_sql(backend: DbBackend, duration: Duration, if_taken: IfLocked) -> String {
    format!(
        "WITH held AS MATERIALIZED ({}) UPDATE lanes SET lease_until = {} + {} FROM held \
         WHERE lanes.kind = $1 AND lanes.key = held.name RETURNING lanes.key AS name",
        lock_held_lanes_sql(backend, if_taken),
        dialect(backend).clock(),
        duration.as_micros(),
    )
}

/// Builds the statement that releases the lanes of the table `given`, ordered by key. It is an upsert of existing
/// lanes, because PostgreSQL then looks up each lane by its key; for an update it could scan all lanes of the kind.
fn release_sql(backend: DbBackend) -> String {
    let dialect = dialect(backend);
    let now = dialect.clock();
    let due = format!(
        "CASE CAST(given.value ->> 6 AS INTEGER) WHEN 1 THEN COALESCE(released.next_due_at, {now}) \
         ELSE {now} + CAST(given.value ->> 2 AS BIGINT) END"
    );
    let released = dialect.lateral_join(
        Join::Inner,
        AliasedTable {
            table: "lanes",
            alias: "released",
        },
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
        given_leases_table(backend)
    )
}

/// Builds the query that locks the lanes of the table `given` that are still held, ordered by key. The lateral join
/// makes PostgreSQL look up each lane by its key, whatever sizes it estimates for the tables.
fn lock_held_lanes_sql(backend: DbBackend, if_taken: IfLocked) -> String {
    let lock = match if_taken {
        IfLocked::Await => "FOR UPDATE",
        IfLocked::Skip => "FOR UPDATE SKIP LOCKED",
    };
    let found = dialect(backend).lateral_lock(LOCKED_LANES, lock, IS_GIVEN);
    let ordered = "(SELECT value FROM given ORDER BY value ->> 0) AS given";
    format!(
        "WITH {} SELECT lanes.key AS name, lanes.epoch FROM {ordered} {found}",
        given_leases_table(backend)
    )
}

/// Returns the table `given`: the JSON list in the second parameter. Each element is a list that begins with key and
/// epoch.
fn given_leases_table(backend: DbBackend) -> String {
    let rows = dialect(backend).json_elements("$2", "rows");
    format!("given AS MATERIALIZED (SELECT value FROM {rows})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lanes::{self, LaneKind, LanesToWake, claim, views};
    use crate::store::testing::{claim_due, query_plan, stores};

    const LEASE: Duration = Duration::from_secs(30);

    /// Returns the leases of three lanes, of which another process has claimed the third since.
    async fn two_held_and_a_lost_one(store: &Store) -> Vec<Lease> {
        let keys = ["1", "2", "3"].map(str::to_owned);
        let tx = store.begin().await.unwrap();
        lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let mut leases = claim_due(store, LaneKind::Endpoint, "me", LEASE, 9)
            .await
            .unwrap();
        leases.sort_by(|a, b| a.key.cmp(&b.key));
        leases[2].epoch -= 1;
        leases
    }

    #[tokio::test]
    async fn held_lanes_are_fenced_and_released_together() {
        for test in stores().await {
            let store = &test.store;
            let leases = two_held_and_a_lost_one(store).await;
            let tx = store.begin().await.unwrap();
            let held = fence(&tx, &leases, IfLocked::Await).await.unwrap().held;
            assert_eq!(
                held,
                leases[..2].iter().cloned().collect(),
                "the third is another's"
            );
            let due = LaneRelease::new(&leases[0], Some(Duration::ZERO));
            let idle = LaneRelease::new(&leases[1], None);
            release(&tx, &[due, idle]).await.unwrap();
            tx.commit().await.unwrap();
            let never_made = Lease {
                key: "4".to_owned(),
                ..leases[0].clone()
            };
            for lease in [&leases[2], &never_made] {
                let tx = store.begin().await.unwrap();
                let again = release(&tx, &[LaneRelease::new(lease, Some(Duration::ZERO))]).await;
                assert!(
                    matches!(again, Err(StoreError::Stale)),
                    "{lease:?}: {again:?}"
                );
            }
            let again = claim_due(store, LaneKind::Endpoint, "me", LEASE, 9)
                .await
                .unwrap();
            assert_eq!(
                again
                    .iter()
                    .map(|lease| lease.key.as_str())
                    .collect::<Vec<_>>(),
                ["1"]
            );
        }
    }

    #[tokio::test]
    async fn the_leases_of_a_process_that_is_gone_are_taken_over_at_once_and_counted() {
        for test in stores().await {
            let store = &test.store;
            let tx = store.begin().await.unwrap();
            lanes::wake(
                &tx,
                LaneKind::Endpoint,
                &["1", "2"].map(str::to_owned),
                LanesToWake::All,
            )
            .await
            .unwrap();
            tx.commit().await.unwrap();
            let gone = claim_due(store, LaneKind::Endpoint, "gone", LEASE, 1)
                .await
                .unwrap();
            claim_due(store, LaneKind::Endpoint, "alive", LEASE, 1)
                .await
                .unwrap();
            end_leases(store, LeasesToEnd::Crashed("gone"))
                .await
                .unwrap();
            let free = claim::select_free_lanes(LaneKind::Endpoint, &sql::now(store.backend()));
            let claimed = claim::claim_selected(store, LaneKind::Endpoint, "new", LEASE, free)
                .await
                .unwrap();
            let taken: Vec<_> = claimed
                .iter()
                .map(|lane| (lane.lease.key.as_str(), lane.crashes))
                .collect();
            assert_eq!(taken, [(gone[0].key.as_str(), 1)]);
        }
    }

    #[tokio::test]
    async fn a_lane_that_is_never_claimed_again_is_deleted_with_its_release() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["1", "2"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Outage, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let mut leases = claim_due(store, LaneKind::Outage, "me", LEASE, 9)
                .await
                .unwrap();
            leases.sort_by(|a, b| a.key.cmp(&b.key));
            let never = LaneRelease {
                next_claim: NextClaim::Never,
                ..LaneRelease::new(&leases[0], None)
            };
            let tx = store.begin().await.unwrap();
            release(&tx, &[never, LaneRelease::new(&leases[1], None)])
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let exists = async |key: &str| {
                views::lane_state(store.reader(), LaneKind::Outage, key)
                    .await
                    .unwrap()
                    .is_some()
            };
            assert_eq!([exists("1").await, exists("2").await], [false, true]);
        }
    }

    #[tokio::test]
    async fn only_a_lease_that_is_still_held_is_prolonged() {
        for test in stores().await {
            let store = &test.store;
            let short = Duration::from_millis(1);
            let keys = ["1", "2", "3", "4"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let mut leases = claim_due(store, LaneKind::Endpoint, "me", short, 9)
                .await
                .unwrap();
            leases.sort_by(|a, b| a.key.cmp(&b.key));
            let tx = store.begin().await.unwrap();
            release(&tx, &[LaneRelease::new(&leases[1], Some(Duration::ZERO))])
                .await
                .unwrap();
            tx.commit().await.unwrap();
            leases[2].epoch -= 1;
            renew(store, &leases[..3], LEASE).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
            let again = claim_due(store, LaneKind::Endpoint, "you", LEASE, 9)
                .await
                .unwrap();
            let mut again: Vec<_> = again.into_iter().map(|lease| lease.key).collect();
            again.sort();
            assert_eq!(
                again,
                ["2", "3", "4"],
                "released; held by another; not in the list"
            );
        }
    }

    #[tokio::test]
    async fn renewals_do_not_deadlock_with_locks_in_another_order() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["1", "2"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Run, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let short = Duration::from_millis(1);
            let mut leases = claim_due(store, LaneKind::Run, "me", short, 9)
                .await
                .unwrap();
            leases.sort_by(|a, b| a.key.cmp(&b.key));
            let tx = store.begin().await.unwrap();
            fence(&tx, &leases[1..=1], IfLocked::Await)
                .await
                .unwrap()
                .require_held(&leases[1])
                .unwrap();
            let renewing = renew(store, &leases, LEASE);
            let other = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                fence(&tx, &leases[0..=0], IfLocked::Await)
                    .await
                    .unwrap()
                    .require_held(&leases[0])
                    .unwrap();
                tx.commit().await.unwrap();
            };
            let (renewed, ()) = tokio::join!(renewing, other);
            renewed.unwrap();
            let again = claim_due(store, LaneKind::Run, "you", LEASE, 9)
                .await
                .unwrap();
            assert_eq!(again, [], "both are prolonged");
        }
    }

    #[tokio::test]
    async fn a_fence_skips_the_lanes_that_others_have_locked() {
        for test in stores().await {
            let store = &test.store;
            let leases = two_held_and_a_lost_one(store).await;
            let set = |leases: &[Lease]| leases.iter().cloned().collect::<HashSet<_>>();
            let tx = store.begin().await.unwrap();
            let fenced = fence(&tx, &leases, IfLocked::Skip).await.unwrap();
            assert_eq!(
                (fenced.held, fenced.skipped),
                (set(&leases[..2]), set(&[])),
                "the third is lost"
            );
            tx.rollback().await.unwrap();
            if store.backend() == DbBackend::Postgres {
                let other = store.begin().await.unwrap();
                lanes::lock(
                    &other,
                    &[LaneName::new(LaneKind::Endpoint, "1")],
                    IfLocked::Await,
                )
                .await
                .unwrap();
                let tx = store.begin().await.unwrap();
                let fenced = fence(&tx, &leases, IfLocked::Skip).await.unwrap();
                assert_eq!(
                    (fenced.held, fenced.skipped),
                    (set(&leases[1..2]), set(&leases[..1]))
                );
            }
        }
    }

    async fn assert_found_by_name(store: &Store) {
        let backend = store.backend();
        let by_name = match backend {
            DbBackend::Postgres => "using lanes_pkey",
            _ => "USING INDEX sqlite_autoindex_lanes_1 (kind=? AND key=?)",
        };
        for sql in [
            lock_held_lanes_sql(backend, IfLocked::Await),
            extend_held_leases_sql(backend, LEASE, IfLocked::Skip),
            release_sql(backend),
        ] {
            let values: [Value; 2] = ["endpoint".into(), "[]".into()];
            let steps = query_plan(store, &sql, values).await;
            assert!(
                steps.iter().any(|step| step.contains(by_name)),
                "{steps:#?}"
            );
        }
    }

    #[tokio::test]
    async fn lanes_are_found_by_their_names_however_few_there_are_or_were_when_they_were_counted() {
        for test in stores().await {
            let keys: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
            let tx = test.store.begin().await.unwrap();
            for kind in [LaneKind::Endpoint, LaneKind::Run, LaneKind::Taxpayer] {
                lanes::wake(&tx, kind, &keys[..1], LanesToWake::All)
                    .await
                    .unwrap();
            }
            tx.execute_unprepared("ANALYZE lanes").await.unwrap();
            tx.commit().await.unwrap();
            assert_found_by_name(&test.store).await;
            let tx = test.store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            assert_found_by_name(&test.store).await;
        }
    }
}
