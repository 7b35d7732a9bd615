//! Claims of lanes whose lease has ended. A lane is abandoned if the process that held it crashed. A lane is isolated
//! if its work was in flight at two crashes, so that it must begin alone. An isolated lane has an ended lease without
//! an owner. A lane that was released normally has no lease at all.

use database::StoreError;
use database::sql::{self, dialect};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ConnectionTrait, DbBackend, Statement, Value};

use crate::store::Store;
use crate::store::lanes::claim::{self, ClaimRequest, ClaimedLanes, FoundLane};
use crate::store::lanes::fair_queue::{self, BlockedStep};

/// The maximum number of abandoned lanes that one query reads. A claim then selects lanes from these, the same number
/// from each taxpayer in turn.
const CANDIDATES_MAX: usize = 512;

/// The two kinds of lanes whose lease has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LanesWithEndedLease {
    /// The lanes whose holder crashed. Whoever claims them must count the crash of each lane before its work begins.
    Abandoned,
    /// The lanes whose work must begin alone. A claim takes only one of them: if two were in progress at a crash,
    /// nobody could tell which of them caused it.
    Isolated,
}

impl LanesWithEndedLease {
    fn owner_condition(self) -> &'static str {
        match self {
            Self::Abandoned => "owner IS NOT NULL",
            Self::Isolated => "owner IS NULL",
        }
    }

    /// Selects the due lanes, the longest due first. Few leases have ended but many lanes may be due, so the query
    /// finds the ended leases first and then checks their due times.
    fn due_lanes_sql(self, backend: DbBackend, blocked: &[BlockedStep], limit: usize) -> String {
        let now = dialect(backend).statement_clock();
        let open = fair_queue::no_blocked_step_condition("ended", blocked);
        format!(
            "WITH ended AS MATERIALIZED (SELECT key, next_due_at, next_step, taxpayer_id FROM lanes \
             WHERE kind = $1 AND lease_until IS NOT NULL AND lease_until < {now} AND {}) \
             SELECT taxpayer_id, key FROM ended WHERE next_due_at <= {now}{open} \
             ORDER BY next_due_at LIMIT {limit}",
            self.owner_condition()
        )
    }

    /// Returns the taxpayers and keys of due lanes, from each taxpayer in turn, and at most as many as each taxpayer
    /// may still hold.
    async fn find_due(
        self,
        store: &Store,
        request: &ClaimRequest<'_>,
    ) -> Result<Vec<FoundLane>, StoreError> {
        let backend = store.backend();
        let limit = match self {
            Self::Abandoned => CANDIDATES_MAX,
            Self::Isolated => 1,
        };
        let values: [Value; 1] = [request.kind.as_str().into()];
        let sql = self.due_lanes_sql(backend, request.blocked, limit);
        let rows = store
            .reader()
            .query_all_raw(Statement::from_sql_and_values(backend, sql, values))
            .await?;
        let found = rows
            .iter()
            .map(FoundLane::try_from)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(match self {
            Self::Abandoned => {
                fair_queue::share_among_taxpayers(found, &request.share, request.limit)
            }
            Self::Isolated => found,
        })
    }

    /// True if a claim would find a lane now.
    pub async fn has_due(
        self,
        store: &Store,
        request: &ClaimRequest<'_>,
    ) -> Result<bool, StoreError> {
        Ok(!self.find_due(store, request).await?.is_empty())
    }

    pub(super) async fn claim(
        self,
        store: &Store,
        request: &ClaimRequest<'_>,
    ) -> Result<ClaimedLanes, StoreError> {
        let found = self.find_due(store, request).await?;
        if found.is_empty() {
            return Ok(ClaimedLanes::default());
        }
        let keys = found.iter().map(|lane| lane.key.as_str());
        let free = claim::select_free_lanes(request.kind, &sql::now(store.backend()))
            .and_where(Expr::col("key").is_in(keys))
            .and_where(Expr::col("lease_until").is_not_null())
            .and_where(Expr::cust(self.owner_condition()))
            .to_owned();
        Ok(ClaimedLanes {
            lanes: claim::claim_still_free(store, request, found, free).await?,
            last_taxpayer: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use database::Transaction;

    use super::*;
    use crate::store::lanes::claim::{ClaimableLanes, ClaimedLane, FairShare, ROUND_START};
    use crate::store::lanes::leases::{self, LaneNote, LaneRelease, LeasesToEnd, NextClaim};
    use crate::store::lanes::{self, LaneKind, LanesToWake, LeasedLane, QueuedLane};
    use crate::store::testing::{query_plan, stores};

    const SIGN_BLOCKED: BlockedStep = BlockedStep {
        step: "sign",
        taxpayers: None,
    };
    const LEASE: Duration = Duration::from_secs(30);
    const OVER: Duration = Duration::ZERO;

    fn request(owner: &str, lease: Duration) -> ClaimRequest<'_> {
        ClaimRequest {
            kind: LaneKind::Endpoint,
            owner,
            lease,
            limit: 8,
            after_taxpayer: ROUND_START,
            blocked: &[],
            share: FairShare::without_limits(),
        }
    }

    async fn due(store: &Store, keys: &[&str]) {
        let keys: Vec<_> = keys.iter().map(|key| (*key).to_owned()).collect();
        let tx = store.begin().await.unwrap();
        lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    async fn in_tx(store: &Store, work: impl AsyncFn(&Transaction) -> Result<(), StoreError>) {
        let tx = store.begin().await.unwrap();
        work(&tx).await.unwrap();
        tx.commit().await.unwrap();
    }

    async fn claim_due(store: &Store, request: &ClaimRequest<'_>) -> Vec<ClaimedLane> {
        claim::claim(store, ClaimableLanes::Due, request)
            .await
            .unwrap()
            .lanes
    }

    async fn claim_abandoned(store: &Store, request: &ClaimRequest<'_>) -> Vec<ClaimedLane> {
        claim::claim(
            store,
            ClaimableLanes::Ended(LanesWithEndedLease::Abandoned),
            request,
        )
        .await
        .unwrap()
        .lanes
    }

    async fn claim_isolated(store: &Store, request: &ClaimRequest<'_>) -> Option<LeasedLane> {
        only(
            claim::claim(
                store,
                ClaimableLanes::Ended(LanesWithEndedLease::Isolated),
                request,
            )
            .await
            .unwrap()
            .lanes,
        )
    }

    /// Returns the only lane of this list; `None` if the list is empty.
    fn only(lanes: Vec<ClaimedLane>) -> Option<LeasedLane> {
        assert!(lanes.len() < 2, "{lanes:?}");
        lanes.into_iter().next().map(|one| one.lane)
    }

    /// Waits until a lease of no duration (`OVER`) has ended.
    async fn over() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }

    /// Claims an abandoned lane with a lease that ends at once, as if the process crashed. Returns the lane's key, its
    /// crashes and its recorded work.
    async fn ends_with(store: &Store, owner: &str) -> Option<(String, u32, Option<String>)> {
        let claimed = only(claim_abandoned(store, &request(owner, OVER)).await);
        over().await;
        claimed.map(|one| (one.lease.key, one.crashes, one.working_on))
    }

    #[tokio::test]
    async fn a_lane_is_counted_for_each_process_that_ended_with_it() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7", "8"]).await;
            assert_eq!(
                claim_abandoned(store, &request("one", LEASE)).await,
                [],
                "nobody has ended with them"
            );
            let taken = claim_due(
                store,
                &ClaimRequest {
                    limit: 1,
                    ..request("one", OVER)
                },
            )
            .await;
            assert_eq!(taken.len(), 1);
            let key = taken[0].lane.lease.key.clone();
            over().await;
            let others = claim_due(store, &request("two", LEASE)).await;
            assert_eq!(others.len(), 1, "only the one that was released");
            assert_ne!(others[0].lane.lease.key, key);
            assert_eq!(ends_with(store, "two").await, Some((key.clone(), 1, None)));
            assert_eq!(
                ends_with(store, "two").await,
                Some((key.clone(), 1, None)),
                "it lives, and lost its lease"
            );
            let claimed = only(claim_abandoned(store, &request("three", OVER)).await).unwrap();
            assert_eq!(claimed.crashes, 2);
            in_tx(store, async |tx| {
                leases::write_note(tx, &claimed.lease, LaneNote::CrashesCounted).await?;
                leases::write_note(tx, &claimed.lease, LaneNote::WorkingOn(Some("it"))).await
            })
            .await;
            over().await;
            assert_eq!(
                ends_with(store, "four").await,
                Some((key.clone(), 1, Some("it".into())))
            );
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
            let lanes: Vec<_> = (0..6)
                .map(|number| lane(1, number))
                .chain([lane(2, 0)])
                .collect();
            in_tx(store, async |tx| {
                lanes::enqueue(tx, LaneKind::Endpoint, &lanes).await
            })
            .await;
            claim_due(store, &request("one", OVER)).await;
            over().await;
            let share = FairShare {
                taxpayer_max: 4,
                held: HashMap::from([(1, 1)]),
                ..FairShare::without_limits()
            };
            let ask = ClaimRequest {
                share,
                ..request("two", LEASE)
            };
            let claimed = claim_abandoned(store, &ask).await;
            let count_of = |taxpayer: i64| {
                claimed
                    .iter()
                    .filter(|one| one.taxpayer_id == taxpayer)
                    .count()
            };
            assert_eq!((count_of(1), count_of(2)), (3, 1), "{claimed:?}");
            assert!(
                claimed.iter().all(|one| one.lane.crashes == 1),
                "{claimed:?}"
            );
            let one = ClaimRequest {
                limit: 1,
                ..request("two", LEASE)
            };
            assert_eq!(
                claim_abandoned(store, &one).await.len(),
                1,
                "not more than are asked for"
            );
        }
    }

    #[tokio::test]
    async fn a_lane_that_goes_alone_is_claimed_alone_and_a_released_one_is_counted_anew() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7"]).await;
            claim_due(store, &request("one", OVER)).await;
            over().await;
            let claimed = only(claim_abandoned(store, &request("two", LEASE)).await).unwrap();
            in_tx(store, async |tx| {
                let release = LaneRelease {
                    next_step: Some("sign"),
                    next_claim: NextClaim::Alone,
                    ..LaneRelease::new(&claimed.lease, Some(Duration::ZERO))
                };
                leases::release(tx, &[release]).await
            })
            .await;
            let two = request("two", LEASE);
            assert_eq!(claim_due(store, &two).await, [], "not with the others");
            assert_eq!(
                claim_abandoned(store, &two).await,
                [],
                "no process ended with it"
            );
            let blocked = ClaimRequest {
                blocked: &[SIGN_BLOCKED],
                ..request("two", LEASE)
            };
            assert_eq!(
                claim_isolated(store, &blocked).await,
                None,
                "its next step is blocked"
            );
            let isolated = claim_isolated(store, &request("two", OVER)).await.unwrap();
            over().await;
            let claimed = only(claim_abandoned(store, &request("three", LEASE)).await).unwrap();
            assert_eq!(
                (claimed.crashes, &claimed.lease.key),
                (1, &isolated.lease.key),
                "it was released before"
            );
            in_tx(store, async |tx| {
                leases::release(
                    tx,
                    &[LaneRelease::new(&claimed.lease, Some(Duration::ZERO))],
                )
                .await
            })
            .await;
            assert_eq!(claim_due(store, &two).await.len(), 1);
        }
    }

    #[tokio::test]
    async fn a_process_that_ends_in_order_is_not_counted() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7", "8"]).await;
            let mine = claim_due(store, &request("one", LEASE)).await;
            leases::end_leases(store, LeasesToEnd::Stopped("one"))
                .await
                .unwrap();
            let tx = store.begin().await.unwrap();
            assert!(
                leases::write_note(&tx, &mine[0].lane.lease, LaneNote::WorkingOn(None))
                    .await
                    .is_err(),
                "nothing of it is written any more"
            );
            drop(tx);
            assert_eq!(claim_due(store, &request("two", LEASE)).await.len(), 2);
            leases::end_leases(store, LeasesToEnd::AllCrashed)
                .await
                .unwrap();
            assert_eq!(claim_due(store, &request("three", LEASE)).await, []);
            let claimed = claim_abandoned(store, &request("three", LEASE)).await;
            let crashes: Vec<_> = claimed.iter().map(|one| one.lane.crashes).collect();
            assert_eq!(crashes, [1, 1], "a start finds them counted");
        }
    }

    #[tokio::test]
    async fn a_lane_that_is_held_back_keeps_its_count_until_its_work_ends() {
        for test in stores().await {
            let store = &test.store;
            due(store, &["7"]).await;
            claim_due(store, &request("one", OVER)).await;
            over().await;
            let claimed = only(claim_abandoned(store, &request("two", LEASE)).await).unwrap();
            in_tx(store, async |tx| {
                let release = LaneRelease {
                    next_claim: NextClaim::AloneAndCounted,
                    ..LaneRelease::new(&claimed.lease, Some(Duration::from_mins(1)))
                };
                leases::release(tx, &[release]).await
            })
            .await;
            in_tx(store, async |tx| {
                let keys = ["7", "8"].map(str::to_owned);
                lanes::wake(tx, LaneKind::Endpoint, &keys, LanesToWake::WithoutHolder)
                    .await
                    .map(drop)
            })
            .await;
            let two = request("two", OVER);
            assert_eq!(
                claim_isolated(store, &two).await,
                None,
                "it waits, also at a start"
            );
            assert_eq!(claim_due(store, &request("two", LEASE)).await.len(), 1);
            due(store, &["7"]).await;
            assert!(
                claim_isolated(store, &two).await.is_some(),
                "new work makes it due"
            );
            over().await;
            assert_eq!(ends_with(store, "three").await.map(|one| one.1), Some(2));
        }
    }

    #[tokio::test]
    async fn lanes_without_a_holder_are_found_by_their_leases_however_many_are_due() {
        for test in stores().await {
            let keys: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
            due(
                &test.store,
                &keys.iter().map(String::as_str).collect::<Vec<_>>(),
            )
            .await;
            let tx = test.store.begin().await.unwrap();
            tx.execute_unprepared("ANALYZE lanes").await.unwrap();
            tx.commit().await.unwrap();
            let backend = test.store.backend();
            let by_lease = match backend {
                DbBackend::Postgres => "lanes_leased",
                _ => "INDEX lanes_leased (kind=? AND lease_until",
            };
            for ended in [
                LanesWithEndedLease::Abandoned,
                LanesWithEndedLease::Isolated,
            ] {
                let sql = ended.due_lanes_sql(backend, &[SIGN_BLOCKED], 8);
                let values: [Value; 1] = ["endpoint".into()];
                let steps = query_plan(&test.store, &sql, values).await;
                assert!(
                    steps.iter().any(|step| step.contains(by_lease)),
                    "{steps:#?}"
                );
            }
        }
    }
}
