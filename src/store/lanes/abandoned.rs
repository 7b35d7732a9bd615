//! Abandoned lanes and isolated lanes. A lane is abandoned if the process that held it crashed. A lane is isolated if
//! its work was in flight at two crashes, so that it must begin alone. Both have a lease that has ended; a released
//! lane has no lease, and an isolated lane has no owner.

use std::collections::HashMap;
use std::time::Duration;

use sea_orm::sea_query::{Expr, ExprTrait, OnConflict, Query, SelectStatement};
use sea_orm::{ConnectionTrait, DbBackend, Statement, Value};

use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::db::sql::{self, dialect};
use crate::store::lanes::fair_queue::{self, BlockedStep, ClaimRequest};
use crate::store::lanes::{self, LaneKind, Lease, LeasedLane};

/// The maximum number of abandoned lanes that one query reads, to share the places of a claim between their taxpayers.
const CANDIDATES_MAX: usize = 512;

/// A claimed lane whose former holder is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbandonedLane {
    pub taxpayer_id: i64,
    pub lane: LeasedLane,
}

/// A claimed lane whose work begins alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolatedLane {
    pub taxpayer_id: i64,
    pub lease: Lease,
}

/// The two kinds of lanes whose lease has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Abandoned,
    Isolated,
}

impl Ended {
    fn owner(self) -> &'static str {
        match self {
            Self::Abandoned => "owner IS NOT NULL",
            Self::Isolated => "owner IS NULL",
        }
    }

    /// Selects due lanes, the one that has been due for the longest time first. Few leases have ended and many lanes
    /// may be due, so the query finds the ended leases first and then checks their due times.
    fn select(self, backend: DbBackend, blocked: &[BlockedStep], limit: usize) -> String {
        let (now, open) = (dialect(backend).statement_clock(), fair_queue::not_blocked("ended", blocked));
        format!(
            "WITH ended AS MATERIALIZED (SELECT key, next_due_at, next_step, taxpayer_id FROM lanes \
             WHERE kind = $1 AND lease_until IS NOT NULL AND lease_until < {now} AND {}) \
             SELECT taxpayer_id, key FROM ended WHERE next_due_at <= {now}{open} \
             ORDER BY next_due_at LIMIT {limit}",
            self.owner()
        )
    }

    async fn find(
        self,
        store: &Store,
        request: &ClaimRequest<'_>,
        limit: usize,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        let backend = store.backend();
        let values: [Value; 1] = [request.kind.as_str().into()];
        let sql = self.select(backend, request.blocked, limit);
        let statement = Statement::from_sql_and_values(backend, sql, values);
        let rows = store.reader().query_all_raw(statement).await?;
        rows.iter().map(|row| Ok((row.try_get("", "taxpayer_id")?, row.try_get("", "key")?))).collect()
    }

    /// Selects those of these lanes that can still be claimed.
    fn free(self, backend: DbBackend, kind: LaneKind, keys: &HashMap<String, i64>) -> SelectStatement {
        lanes::free(kind, &sql::now(backend))
            .and_where(Expr::col("key").is_in(keys.keys().map(String::as_str)))
            .and_where(Expr::col("lease_until").is_not_null())
            .and_where(Expr::cust(self.owner()))
            .to_owned()
    }

    async fn claim(
        self,
        store: &Store,
        request: &ClaimRequest<'_>,
        keys: HashMap<String, i64>,
    ) -> Result<Vec<AbandonedLane>, StoreError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let free = self.free(store.backend(), request.kind, &keys);
        let claimed = lanes::claim_where(store, request.kind, request.owner, request.lease, free).await?;
        let with_taxpayer = |lane: LeasedLane| {
            let taxpayer_id = keys.get(&lane.lease.key).copied().unwrap_or_default();
            AbandonedLane { taxpayer_id, lane }
        };
        Ok(claimed.into_iter().map(with_taxpayer).collect())
    }
}

/// Returns the taxpayers and keys of up to `limit` abandoned lanes that are due: as many of each taxpayer as it may
/// still hold, in turns between the taxpayers.
pub async fn find(store: &Store, request: &ClaimRequest<'_>) -> Result<Vec<(i64, String)>, StoreError> {
    let found = Ended::Abandoned.find(store, request, CANDIDATES_MAX).await?;
    Ok(fair_queue::share_out(found, &request.share, request.limit))
}

/// Claims up to `limit` abandoned lanes. The caller counts the crash of each before its work begins.
pub async fn claim(store: &Store, request: &ClaimRequest<'_>) -> Result<Vec<AbandonedLane>, StoreError> {
    let found = find(store, request).await?;
    let keys = found.into_iter().map(|(taxpayer_id, key)| (key, taxpayer_id)).collect();
    Ended::Abandoned.claim(store, request, keys).await
}

/// Returns the key of an isolated lane that is due.
pub async fn find_isolated(
    store: &Store,
    request: &ClaimRequest<'_>,
) -> Result<Option<(i64, String)>, StoreError> {
    Ok(Ended::Isolated.find(store, request, 1).await?.pop())
}

/// Claims one isolated lane. It claims only one, because with two of them in progress nobody could tell which one
/// crashed the process.
pub async fn claim_isolated(
    store: &Store,
    request: &ClaimRequest<'_>,
) -> Result<Option<IsolatedLane>, StoreError> {
    let Some((taxpayer_id, key)) = find_isolated(store, request).await? else { return Ok(None) };
    let keys = HashMap::from([(key, taxpayer_id)]);
    let claimed = Ended::Isolated.claim(store, request, keys).await?.pop();
    Ok(claimed.map(|one| IsolatedLane { taxpayer_id: one.taxpayer_id, lease: one.lane.lease }))
}

/// Releases a lane whose holders crashed repeatedly. It is claimed alone after the delay. Its crash count stays until
/// its work ends without a crash.
pub async fn hold_back(tx: &Transaction, lease: &Lease, delay: Duration) -> Result<(), StoreError> {
    let statement = lanes::update_held(lease)
        .value("owner", Option::<String>::None)
        .value("lease_until", lanes::ABANDONED)
        .value("next_due_at", lanes::later(&sql::now(tx.get_database_backend()), delay))
        .to_owned();
    lanes::stale_if_none(tx.execute(&statement).await?.rows_affected())
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
    use crate::store::lanes::fair_queue::{FairShare, QueuedLane, START};
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

    async fn in_tx(store: &Store, work: impl AsyncFn(&Transaction) -> Result<(), StoreError>) {
        let tx = store.begin().await.unwrap();
        work(&tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Returns the only lane of these, if there is one.
    fn only(lanes: Vec<AbandonedLane>) -> Option<LeasedLane> {
        assert!(lanes.len() < 2, "{lanes:?}");
        lanes.into_iter().next().map(|one| one.lane)
    }

    /// Waits until a lease that ends at once has ended.
    async fn over() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    /// Claims a lane with a lease that ends at once, as if the process crashed. Returns the lane's key, its crashes and
    /// its recorded work.
    async fn ends_with(store: &Store, owner: &str) -> Option<(String, u32, Option<String>)> {
        let claimed = only(claim(store, &request(owner, OVER)).await.unwrap());
        over().await;
        claimed.map(|one| (one.lease.key, one.crashes, one.working_on))
    }

    #[tokio::test]
    async fn a_lane_is_counted_for_each_process_that_ended_with_it() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7", "8"]).await;
            assert_eq!(claim(store, &request("one", LEASE)).await.unwrap(), [], "nobody has ended with them");
            let taken =
                fair_queue::claim(store, &ClaimRequest { limit: 1, ..request("one", OVER) }).await.unwrap();
            assert_eq!(taken.leases.len(), 1);
            let key = taken.leases[0].lease.key.clone();
            over().await;
            let others = fair_queue::claim(store, &request("two", LEASE)).await.unwrap().leases;
            assert_eq!(others.len(), 1, "only the one that was released");
            assert_ne!(others[0].lease.key, key);
            assert_eq!(ends_with(store, "two").await, Some((key.clone(), 1, None)));
            assert_eq!(
                ends_with(store, "two").await,
                Some((key.clone(), 1, None)),
                "it lives, and lost its lease"
            );
            let claimed = only(claim(store, &request("three", OVER)).await.unwrap()).unwrap();
            assert_eq!(claimed.crashes, 2);
            in_tx(store, async |tx| {
                reset_crashes(tx, &claimed.lease).await?;
                set_working_on(tx, &claimed.lease, Some("it")).await
            })
            .await;
            over().await;
            assert_eq!(ends_with(store, "four").await, Some((key.clone(), 1, Some("it".into()))));
        }
    }

    #[tokio::test]
    async fn all_abandoned_lanes_are_claimed_at_once_and_shared_between_taxpayers() {
        for test in stores().await {
            let store = &test.store;
            let lane = |taxpayer_id: i64, number: i64| QueuedLane {
                key: format!("{taxpayer_id}/{number}"),
                taxpayer_id,
                deadline: number,
                next_step: None,
            };
            let lanes: Vec<_> = (0..6).map(|number| lane(1, number)).chain([lane(2, 0)]).collect();
            in_tx(store, async |tx| fair_queue::enqueue(tx, LaneKind::Endpoint, &lanes).await).await;
            fair_queue::claim(store, &request("one", OVER)).await.unwrap();
            over().await;
            let share = FairShare { max: 4, held: HashMap::from([(1, 1)]), ..FairShare::unlimited() };
            let ask = ClaimRequest { share, ..request("two", LEASE) };
            let claimed = claim(store, &ask).await.unwrap();
            let count_of = |taxpayer: i64| claimed.iter().filter(|one| one.taxpayer_id == taxpayer).count();
            assert_eq!((count_of(1), count_of(2)), (3, 1), "{claimed:?}");
            assert!(claimed.iter().all(|one| one.lane.crashes == 1), "{claimed:?}");
            let one = ClaimRequest { limit: 1, ..request("two", LEASE) };
            assert_eq!(claim(store, &one).await.unwrap().len(), 1, "not more than are asked for");
        }
    }

    #[tokio::test]
    async fn a_lane_that_goes_alone_is_claimed_alone_and_a_released_one_is_counted_anew() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7"]).await;
            fair_queue::claim(store, &request("one", OVER)).await.unwrap();
            over().await;
            let claimed = only(claim(store, &request("two", LEASE)).await.unwrap()).unwrap();
            in_tx(store, async |tx| {
                lanes::release_isolated(tx, &claimed.lease, Some(Duration::ZERO), Some("sign")).await
            })
            .await;
            let two = request("two", LEASE);
            assert_eq!(fair_queue::claim(store, &two).await.unwrap().leases, [], "not with the others");
            assert_eq!(claim(store, &two).await.unwrap(), [], "no process ended with it");
            let blocked = ClaimRequest { blocked: &[SIGN_BLOCKED], ..request("two", LEASE) };
            assert_eq!(claim_isolated(store, &blocked).await.unwrap(), None, "its next step is blocked");
            let isolated = claim_isolated(store, &request("two", OVER)).await.unwrap().unwrap();
            over().await;
            let claimed = only(claim(store, &request("three", LEASE)).await.unwrap()).unwrap();
            assert_eq!(
                (claimed.crashes, &claimed.lease.key),
                (1, &isolated.lease.key),
                "it was released before"
            );
            in_tx(store, async |tx| lanes::release(tx, &claimed.lease, Some(Duration::ZERO)).await).await;
            assert_eq!(fair_queue::claim(store, &two).await.unwrap().leases.len(), 1);
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
            let claimed = claim(store, &request("three", LEASE)).await.unwrap();
            let crashes: Vec<_> = claimed.iter().map(|one| one.lane.crashes).collect();
            assert_eq!(crashes, [1, 1], "a start finds them counted");
        }
    }

    #[tokio::test]
    async fn a_lane_that_is_held_back_keeps_its_count_until_its_work_ends() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7"]).await;
            fair_queue::claim(store, &request("one", OVER)).await.unwrap();
            over().await;
            let claimed = only(claim(store, &request("two", LEASE)).await.unwrap()).unwrap();
            in_tx(store, async |tx| hold_back(tx, &claimed.lease, Duration::from_mins(1)).await).await;
            in_tx(store, async |tx| {
                schedule_at_start(tx, LaneKind::Endpoint, "7").await?;
                schedule_at_start(tx, LaneKind::Endpoint, "8").await
            })
            .await;
            let two = request("two", OVER);
            assert_eq!(claim_isolated(store, &two).await.unwrap(), None, "it waits, also at a start");
            assert_eq!(fair_queue::claim(store, &request("two", LEASE)).await.unwrap().leases.len(), 1);
            due(store, &["7"]).await;
            assert!(claim_isolated(store, &two).await.unwrap().is_some(), "new work makes it due");
            over().await;
            assert_eq!(ends_with(store, "three").await.map(|one| one.1), Some(2));
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
            for ended in [Ended::Abandoned, Ended::Isolated] {
                let sql = ended.select(backend, &[SIGN_BLOCKED], 8);
                let values: [Value; 1] = ["endpoint".into()];
                let steps = query_plan(&test.store, &sql, values).await;
                assert!(steps.iter().any(|step| step.contains(by_lease)), "{steps:#?}");
            }
        }
    }
}
