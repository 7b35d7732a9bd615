//! Abandoned lanes and isolated lanes. A lane is abandoned if the process that held it crashed. A lane is
//! isolated if its work may have crashed a process before. Both have an expired lease; a released lane has no
//! lease.

use std::time::Duration;

use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query};
use sea_orm::{ConnectionTrait, DbBackend, Statement, Value};

use crate::domain::kernel::crash::is_quarantined;
use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::db::sql::{self, dialect};
use crate::store::lanes::fair_queue::{self, BlockedStep, ClaimRequest};
use crate::store::lanes::{self, LaneKind, Lease, LeasedLane};

/// Returns the key of a due lane whose lease has expired.
pub async fn find_one(store: &Store, request: &ClaimRequest<'_>) -> Result<Option<String>, StoreError> {
    let backend = store.backend();
    let values: [Value; 1] = [request.kind.as_str().into()];
    let statement = Statement::from_sql_and_values(backend, abandoned_lane(backend, request.blocked), values);
    let found = store.reader().query_one_raw(statement).await?;
    Ok(found.map(|row| row.try_get("", "key")).transpose()?)
}

/// Claims one due lane whose lease has expired. It claims only one, because the work of such a lane may crash
/// the process: with two of them in progress nobody could tell which one did.
pub async fn claim_one(store: &Store, request: &ClaimRequest<'_>) -> Result<Option<LeasedLane>, StoreError> {
    let Some(key) = find_one(store, request).await? else { return Ok(None) };
    let mut free = lanes::free(request.kind, &sql::now(store.backend()));
    free.and_where(Expr::col("key").eq(key)).and_where(Expr::col("lease_until").is_not_null());
    Ok(lanes::claim_where(store, request.kind, request.owner, request.lease, free).await?.pop())
}

/// How long a lane waits after one process crash. After `n` crashes it waits `n * n` times as long.
const CRASH_BACKOFF: Duration = Duration::from_secs(15);

/// Sets a later due time of a lane whose holders crashed, before its work begins: if the work crashes this process too,
/// the next process has to wait.
pub async fn postpone(store: &Store, claimed: &LeasedLane) -> Result<(), StoreError> {
    let (kind, lane, crashes) = (claimed.lease.kind.as_str(), &claimed.lease.key, claimed.crashes);
    let wait = CRASH_BACKOFF.saturating_mul(crashes.saturating_mul(crashes));
    let due = lanes::later(&sql::now(store.backend()), wait);
    let tx = store.begin().await?;
    let statement = lanes::update_held(&claimed.lease).value("next_due_at", due).to_owned();
    lanes::stale_if_none(tx.execute(&statement).await?.rows_affected())?;
    tx.commit().await?;
    if is_quarantined(crashes) {
        tracing::warn!(kind, lane, crashes, "processes crashed repeatedly on this work; it is held back");
    }
    Ok(())
}

/// Makes a lane due now when a process starts. Creates the lane if it does not exist. A lane with a lease, even
/// an expired one, keeps its due time: if its holder crashed, the next claim has to wait until that time.
pub async fn schedule_at_start(tx: &Transaction, kind: LaneKind, key: &str) -> Result<(), StoreError> {
    let now = sql::now(tx.get_database_backend());
    let known = OnConflict::columns(["kind", "key"])
        .update_column("next_due_at")
        .action_and_where(Expr::col(("lanes", "lease_until")).is_null())
        .to_owned();
    let statement = Query::insert()
        .into_table("lanes")
        .columns(["kind", "key", "epoch", "version", "next_due_at"])
        .values_panic([kind.as_str().into(), key.into(), 0_i64.into(), 0_i64.into(), now])
        .on_conflict(known)
        .to_owned();
    tx.execute(&statement).await?;
    Ok(())
}

/// Selects one abandoned lane that is due. A lane is abandoned if its lease has expired. Few lanes are
/// abandoned and many may be due, so the query finds the expired leases first and then checks their due times.
fn abandoned_lane(backend: DbBackend, blocked: &[BlockedStep]) -> String {
    let (now, open) = (dialect(backend).statement_clock(), fair_queue::not_blocked("abandoned", blocked));
    format!(
        "WITH abandoned AS MATERIALIZED (SELECT key, next_due_at, next_step, taxpayer_id FROM lanes \
         WHERE kind = $1 AND lease_until IS NOT NULL AND lease_until < {now}) \
         SELECT key FROM abandoned WHERE next_due_at <= {now}{open} ORDER BY next_due_at LIMIT 1"
    )
}

/// Records the piece of work that is in progress on a lane; `None` clears the record. If the process crashes,
/// the next holder of the lane knows which piece of work was in progress.
pub async fn set_working_on(tx: &Transaction, lease: &Lease, what: Option<&str>) -> Result<(), StoreError> {
    let statement = lanes::update_held(lease).value("working_on", what).to_owned();
    lanes::stale_if_none(tx.execute(&statement).await?.rows_affected())
}

/// Resets the crash count of a lane and clears the record of its work in progress. The caller counts the
/// crashes for that piece of work instead.
pub async fn reset_crashes(tx: &Transaction, lease: &Lease) -> Result<(), StoreError> {
    let statement =
        lanes::update_held(lease).value("crashes", 0).value("working_on", Option::<String>::None).to_owned();
    lanes::stale_if_none(tx.execute(&statement).await?.rows_affected())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lanes::fair_queue::{FairShare, START};
    use crate::store::lanes::leases;
    use crate::store::testing::{query_plan, stores};

    const SIGN_BLOCKED: BlockedStep = BlockedStep { step: "sign", taxpayers: None };
    const LEASE: Duration = Duration::from_secs(30);
    const OVER: Duration = Duration::ZERO;

    fn request(owner: &str, lease: Duration) -> ClaimRequest<'_> {
        ClaimRequest {
            kind: LaneKind::Endpoint,
            owner,
            lease,
            limit: 8,
            after: START,
            blocked: &[],
            share: FairShare::unlimited(),
        }
    }

    async fn due(store: &Store, keys: &[&str]) {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        let tx = store.begin().await.unwrap();
        lanes::make_due(&tx, LaneKind::Endpoint, &keys).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Claims a lane with a lease that expires at once, as if the process crashed. Returns the lane's key, its
    /// crashes and its recorded work.
    async fn ends_with(store: &Store, owner: &str) -> Option<(String, u32, Option<String>)> {
        let taken = claim_one(store, &request(owner, OVER)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        taken.map(|one| (one.lease.key, one.crashes, one.working_on))
    }

    #[tokio::test]
    async fn a_lane_is_counted_for_each_process_that_ended_with_it() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7", "8"]).await;
            assert_eq!(
                claim_one(store, &request("one", LEASE)).await.unwrap(),
                None,
                "nobody has ended with them"
            );
            let taken =
                fair_queue::claim(store, &ClaimRequest { limit: 1, ..request("one", OVER) }).await.unwrap();
            assert_eq!(taken.leases.len(), 1);
            let key = taken.leases[0].lease.key.clone();
            tokio::time::sleep(Duration::from_millis(2)).await;
            let others = fair_queue::claim(store, &request("two", LEASE)).await.unwrap().leases;
            assert_eq!(others.len(), 1, "only the one that was released");
            assert_ne!(others[0].lease.key, key);
            assert_eq!(ends_with(store, "two").await, Some((key.clone(), 1, None)));
            assert_eq!(
                ends_with(store, "two").await,
                Some((key.clone(), 1, None)),
                "it lives, and lost its lease"
            );
            let claimed = claim_one(store, &request("three", OVER)).await.unwrap().unwrap();
            assert_eq!(claimed.crashes, 2);
            let tx = store.begin().await.unwrap();
            reset_crashes(&tx, &claimed.lease).await.unwrap();
            set_working_on(&tx, &claimed.lease, Some("it")).await.unwrap();
            tx.commit().await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert_eq!(ends_with(store, "four").await, Some((key.clone(), 1, Some("it".into()))));
        }
    }

    #[tokio::test]
    async fn a_lane_that_was_given_back_is_counted_anew_and_one_apart_is_taken_up_apart() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7"]).await;
            fair_queue::claim(store, &request("one", OVER)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
            let claimed = claim_one(store, &request("two", LEASE)).await.unwrap().unwrap();
            assert_eq!(claimed.crashes, 1);
            let tx = store.begin().await.unwrap();
            lanes::release_isolated(&tx, &claimed.lease, Some(Duration::ZERO), Some("sign")).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(
                fair_queue::claim(store, &request("two", LEASE)).await.unwrap().leases,
                [],
                "not with the others"
            );
            let blocked = ClaimRequest { blocked: &[SIGN_BLOCKED], ..request("two", LEASE) };
            assert_eq!(claim_one(store, &blocked).await.unwrap(), None, "its next step is blocked");
            let claimed = claim_one(store, &request("two", LEASE)).await.unwrap().unwrap();
            assert_eq!(claimed.crashes, 0);
            let tx = store.begin().await.unwrap();
            lanes::release(&tx, &claimed.lease, Some(Duration::ZERO)).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(fair_queue::claim(store, &request("two", LEASE)).await.unwrap().leases.len(), 1);
        }
    }

    #[tokio::test]
    async fn a_process_that_ends_in_order_is_not_counted() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7", "8"]).await;
            let mine = fair_queue::claim(store, &request("one", LEASE)).await.unwrap().leases;
            leases::release_owned_by(store, "one").await.unwrap();
            let tx = store.begin().await.unwrap();
            assert!(lanes::fence(&tx, &mine[0].lease).await.is_err(), "nothing of it is written any more");
            drop(tx);
            assert_eq!(fair_queue::claim(store, &request("two", LEASE)).await.unwrap().leases.len(), 2);
            leases::expire_all(store).await.unwrap();
            assert_eq!(fair_queue::claim(store, &request("three", LEASE)).await.unwrap().leases, []);
            assert_eq!(ends_with(store, "three").await.map(|one| one.1), Some(1), "a start finds it counted");
        }
    }

    #[tokio::test]
    async fn a_lane_waits_longer_after_each_crash_of_its_holder() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7"]).await;
            let crashes = async |owner| {
                let claimed = claim_one(store, &request(owner, OVER)).await.unwrap()?;
                postpone(store, &claimed).await.unwrap();
                tokio::time::sleep(Duration::from_millis(2)).await;
                Some(claimed.crashes)
            };
            fair_queue::claim(store, &request("one", OVER)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
            assert_eq!(crashes("two").await, Some(1), "at once after the first");
            assert_eq!(crashes("three").await, None, "held back after the second");
            let tx = store.begin().await.unwrap();
            schedule_at_start(&tx, LaneKind::Endpoint, "7").await.unwrap();
            schedule_at_start(&tx, LaneKind::Endpoint, "8").await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(crashes("three").await, None, "also at a start");
            assert_eq!(fair_queue::claim(store, &request("three", LEASE)).await.unwrap().leases.len(), 1);
            due(store, &["7"]).await;
            assert_eq!(crashes("three").await, Some(2), "new work makes it due");
        }
    }

    #[tokio::test]
    async fn lanes_without_a_holder_are_found_by_their_leases_however_many_are_due() {
        for test in stores().await {
            let keys: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
            due(&test.store, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
            let tx = test.store.begin().await.unwrap();
            tx.execute_unprepared("ANALYZE lanes").await.unwrap();
            tx.commit().await.unwrap();
            let backend = test.store.backend();
            let by_lease = match backend {
                DbBackend::Postgres => "lanes_leased",
                _ => "INDEX lanes_leased (kind=? AND lease_until",
            };
            let sql = abandoned_lane(backend, &[SIGN_BLOCKED]);
            let values: [Value; 1] = ["endpoint".into()];
            let steps = query_plan(&test.store, &sql, values).await;
            assert!(steps.iter().any(|step| step.contains(by_lease)), "{steps:#?}");
        }
    }
}
