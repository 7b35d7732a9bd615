//! Fair claims of due lanes. A claim takes lanes from each taxpayer in turn, and from one taxpayer in the order of
//! their deadlines. The next claim continues after the taxpayer that was served last. So a taxpayer with a hundred
//! thousand lanes waits as long for its next claim as a taxpayer with a single lane.
//!
//! A lane can name the step that its work needs next. A claim skips a lane whose step is blocked for its taxpayer. The
//! lane keeps its deadline, so that an outage does not move it back in the queue.

use std::collections::HashMap;

use database::StoreError;
use database::sql::{self, dialect};
use sea_orm::sea_query::{Expr, ExprTrait};
use sea_orm::{ConnectionTrait, DbBackend, Statement, Value};

use crate::store::Store;
use crate::store::lanes::claim::{
    self, ClaimRequest, ClaimedLanes, FairShare, FoundLane, ROUND_START,
};

/// A step of the pipeline that cannot be called now, for example because a breaker is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockedStep {
    pub step: &'static str,
    /// The taxpayers for which the step is blocked; `None` if it is blocked for all. If the list is empty, the step is
    /// blocked for nobody, but the lanes that wait for it are due when it is not listed any more.
    pub taxpayers: Option<Vec<i64>>,
}

impl BlockedStep {
    pub fn blocks(&self, step: &str, taxpayer: i64) -> bool {
        self.step == step
            && self
                .taxpayers
                .as_ref()
                .is_none_or(|taxpayers| taxpayers.contains(&taxpayer))
    }

    /// True if this step is no longer blocked for at least one of its taxpayers. `blocked_now` lists the steps that are
    /// blocked now.
    pub fn is_unblocked_for_any_taxpayer(&self, blocked_now: &[Self]) -> bool {
        let Some(now) = blocked_now.iter().find(|other| other.step == self.step) else {
            return true;
        };
        match (&self.taxpayers, &now.taxpayers) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(before), Some(now)) => before.iter().any(|taxpayer| !now.contains(taxpayer)),
        }
    }

    /// Returns the SQL condition that a lane does not need this step, or that the step is not blocked for its taxpayer.
    fn not_blocked_condition(&self, table: &str) -> String {
        let differs = format!(
            "{table}.next_step IS NULL OR {table}.next_step <> '{}'",
            self.step
        );
        match &self.taxpayers {
            None => format!("({differs})"),
            Some(taxpayers) if taxpayers.is_empty() => "(1 = 1)".to_owned(),
            Some(taxpayers) => {
                let ids = taxpayers
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ");
                format!("({differs} OR {table}.taxpayer_id NOT IN ({ids}))")
            }
        }
    }
}

/// Claims up to `limit` due lanes, starting after the taxpayer that was served last.
pub(super) async fn claim_due(
    store: &Store,
    request: &ClaimRequest<'_>,
) -> Result<ClaimedLanes, StoreError> {
    let taxpayers = next_taxpayers(store, request).await?;
    let Some(last) = taxpayers.last().copied() else {
        return Ok(ClaimedLanes::default());
    };
    let found = interleave_by_taxpayer(
        most_urgent_lanes(store, request, &taxpayers).await?,
        request.limit,
    );
    let found = request
        .share
        .drop_over_integrator_limit(store, found)
        .await?;
    let keys = found.iter().map(|lane| lane.key.as_str());
    let free = claim::select_free_lanes(request.kind, &sql::now(store.backend()))
        .and_where(Expr::col("key").is_in(keys))
        .and_where(Expr::col("lease_until").is_null())
        .to_owned();
    Ok(ClaimedLanes {
        lanes: claim::claim_still_free(store, request, found, free).await?,
        last_taxpayer: Some(last),
    })
}

/// Returns the ids of the next taxpayers with due lanes: first the ids above that of the taxpayer served last, then the
/// lower ids, both in ascending order.
async fn next_taxpayers(store: &Store, request: &ClaimRequest<'_>) -> Result<Vec<i64>, StoreError> {
    let mut found = due_taxpayers(
        store,
        request,
        request.after_taxpayer,
        i64::MAX,
        request.limit,
    )
    .await?;
    if found.len() < request.limit && request.after_taxpayer > ROUND_START {
        let missing = request.limit - found.len();
        found.extend(
            due_taxpayers(store, request, ROUND_START, request.after_taxpayer, missing).await?,
        );
    }
    Ok(found)
}

/// Returns up to `limit` ids of taxpayers that have free lanes, above `after` and up to `up_to`. The recursive query
/// jumps from one taxpayer to the next in the index, so it reads only one lane of each.
async fn due_taxpayers(
    store: &Store,
    request: &ClaimRequest<'_>,
    after: i64,
    up_to: i64,
    limit: usize,
) -> Result<Vec<i64>, StoreError> {
    let free = free_lane_condition(store.backend(), request.blocked)
        + &request.share.below_limit_condition();
    let next = |from: &str| {
        format!(
            "(SELECT lanes.taxpayer_id FROM lanes WHERE lanes.kind = $1 AND lanes.taxpayer_id > {from} \
             AND lanes.taxpayer_id <= $3 AND {free} ORDER BY lanes.taxpayer_id LIMIT 1)"
        )
    };
    let sql = format!(
        "WITH RECURSIVE turn(taxpayer_id, number) AS (SELECT {first}, 1 UNION ALL SELECT {other}, turn.number + 1 \
         FROM turn WHERE turn.taxpayer_id IS NOT NULL AND turn.number < $4) \
         SELECT taxpayer_id FROM turn WHERE taxpayer_id IS NOT NULL ORDER BY number",
        first = next("$2"),
        other = next("turn.taxpayer_id"),
    );
    let limit = i32::try_from(limit).unwrap_or(i32::MAX);
    let values: [Value; 4] = [
        request.kind.as_str().into(),
        after.into(),
        up_to.into(),
        limit.into(),
    ];
    let rows = store
        .reader()
        .query_all_raw(statement_with_parameters(store, sql, values))
        .await?;
    rows.iter()
        .map(|row| Ok(row.try_get("", "taxpayer_id")?))
        .collect()
}

/// Returns the taxpayers and keys of the most urgent lanes. Each taxpayer gets the same share of the limit, but not
/// more lanes than it may still hold.
async fn most_urgent_lanes(
    store: &Store,
    request: &ClaimRequest<'_>,
    taxpayers: &[i64],
) -> Result<Vec<FoundLane>, StoreError> {
    let sql = urgent_lanes_sql(store.backend(), request, taxpayers);
    let values = [request.kind.as_str().into()]
        .into_iter()
        .chain(taxpayers.iter().map(|id| Value::from(*id)));
    let rows = store
        .reader()
        .query_all_raw(statement_with_parameters(store, sql, values))
        .await?;
    rows.iter().map(FoundLane::try_from).collect()
}

/// Builds the query for the most urgent lanes of these taxpayers, one part for each of them. On SQLite each part names
/// the index to use: SQLite would otherwise read and sort the due lanes of all taxpayers in every part.
fn urgent_lanes_sql(backend: DbBackend, request: &ClaimRequest<'_>, taxpayers: &[i64]) -> String {
    let free = free_lane_condition(backend, request.blocked);
    let lanes = if dialect(backend).ignores_selectivity() {
        "lanes INDEXED BY lanes_in_turn"
    } else {
        "lanes"
    };
    let to_fill = request.limit.div_ceil(taxpayers.len());
    let turns = taxpayers.iter().enumerate().map(|(index, taxpayer)| {
        let number = index + 2;
        let limit = to_fill.min(request.share.remaining_lanes(*taxpayer));
        format!(
            "SELECT * FROM (SELECT lanes.taxpayer_id, lanes.key FROM {lanes} WHERE lanes.kind = $1 \
             AND lanes.taxpayer_id = ${number} AND {free} ORDER BY lanes.deadline, lanes.next_due_at \
             LIMIT {limit}) AS turn{number}"
        )
    });
    turns.collect::<Vec<_>>().join(" UNION ALL ")
}

/// Returns up to `limit` of these lanes, from each taxpayer in turn, and at most as many as the taxpayer may still
/// hold.
pub(super) fn share_among_taxpayers(
    lanes: Vec<FoundLane>,
    share: &FairShare,
    limit: usize,
) -> Vec<FoundLane> {
    let mut held: HashMap<i64, usize> = HashMap::new();
    let lanes = lanes.into_iter().filter(|lane| {
        let held = held.entry(lane.taxpayer_id).or_default();
        *held += 1;
        *held <= share.remaining_lanes(lane.taxpayer_id)
    });
    interleave_by_taxpayer(lanes.collect(), limit)
}

/// Reorders the lanes: the first lane of each taxpayer, then the second of each, and so on. Returns up to `limit`
/// lanes.
fn interleave_by_taxpayer(lanes: Vec<FoundLane>, limit: usize) -> Vec<FoundLane> {
    let mut leases: HashMap<i64, usize> = HashMap::new();
    let mut numbered: Vec<_> = lanes
        .into_iter()
        .map(|lane| {
            let turn = leases.entry(lane.taxpayer_id).or_default();
            *turn += 1;
            (*turn, lane)
        })
        .collect();
    // The sort is stable, so the taxpayers keep their order within each round.
    numbered.sort_by_key(|(turn, _)| *turn);
    numbered
        .into_iter()
        .take(limit)
        .map(|(_, lane)| lane)
        .collect()
}

/// Returns the SQL condition that a lane is due, has no lease, and does not need a blocked step.
pub(super) fn free_lane_condition(backend: DbBackend, blocked: &[BlockedStep]) -> String {
    let now = dialect(backend).statement_clock();
    let open = no_blocked_step_condition("lanes", blocked);
    format!("lanes.next_due_at <= {now} AND lanes.lease_until IS NULL{open}")
}

/// Returns the SQL condition that a lane of this table does not need a blocked step, beginning with `AND`. Empty if no
/// step is blocked.
pub(crate) fn no_blocked_step_condition(table: &str, blocked: &[BlockedStep]) -> String {
    let mut open = String::new();
    for step in blocked {
        open.push_str(" AND ");
        open.push_str(&step.not_blocked_condition(table));
    }
    open
}

pub(super) fn statement_with_parameters(
    store: &Store,
    sql: String,
    values: impl IntoIterator<Item = Value>,
) -> Statement {
    Statement::from_sql_and_values(store.backend(), sql, values)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::lanes::claim::NO_TAXPAYER;
    use crate::store::lanes::leases::{self, LaneRelease, LeasesToEnd, NextClaim};
    use crate::store::lanes::views::DueLaneGroup;
    use crate::store::lanes::{
        self, LaneKind, LanesToWake, Lease, QueuedLane, WaitingLanes, views,
    };
    use crate::store::testing::{self, query_plan, stores};

    const LEASE: Duration = Duration::from_secs(30);

    fn lane(taxpayer_id: i64, deadline: i64, next_step: Option<&'static str>) -> QueuedLane {
        QueuedLane {
            key: format!("{taxpayer_id}/{deadline}"),
            taxpayer_id,
            deadline,
            next_step,
        }
    }

    async fn hasten_signs(store: &Store, blocked: &[BlockedStep]) -> Result<u64, StoreError> {
        lanes::make_waiting_due(
            store,
            WaitingLanes::For {
                kind: LaneKind::Run,
                steps: &["sign"],
                blocked,
            },
        )
        .await
    }

    async fn add(store: &Store, lanes: &[QueuedLane]) {
        let tx = store.begin().await.unwrap();
        for some in lanes.chunks(200) {
            lanes::enqueue(&tx, LaneKind::Run, some).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    fn blocked_for(step: &'static str, taxpayers: Option<&[i64]>) -> BlockedStep {
        BlockedStep {
            step,
            taxpayers: taxpayers.map(<[i64]>::to_vec),
        }
    }

    async fn claim_leases(store: &Store, limit: usize) -> Vec<Lease> {
        let claimed = claim_due(store, &request(limit, ROUND_START, &[]))
            .await
            .unwrap();
        claimed
            .lanes
            .into_iter()
            .map(|turn| turn.lane.lease)
            .collect()
    }

    fn request(limit: usize, after: i64, blocked: &[BlockedStep]) -> ClaimRequest<'_> {
        ClaimRequest {
            kind: LaneKind::Run,
            owner: "me",
            lease: LEASE,
            limit,
            after_taxpayer: after,
            blocked,
            share: FairShare::without_limits(),
        }
    }

    /// Claims up to `limit` lanes, starting with the taxpayer after `after`. Returns the keys of the lanes and
    /// the id of the last taxpayer served.
    async fn claim_keys(
        store: &Store,
        limit: usize,
        after: i64,
        blocked: &[BlockedStep],
    ) -> (Vec<String>, i64) {
        let taken = claim_due(store, &request(limit, after, blocked))
            .await
            .unwrap();
        (
            taken
                .lanes
                .into_iter()
                .map(|turn| turn.lane.lease.key)
                .collect(),
            taken.last_taxpayer.unwrap_or(after),
        )
    }

    #[tokio::test]
    async fn taxpayers_take_turns_and_each_ones_most_urgent_goes_first() {
        for test in stores().await {
            let store = &test.store;
            let noisy: Vec<_> = (0..1_000).map(|n| lane(1, 1_000 - n, None)).collect();
            add(store, &noisy).await;
            add(
                store,
                &[
                    lane(2, 5_000, None),
                    lane(3, 7_000, None),
                    lane(3, 6_000, None),
                ],
            )
            .await;
            let (keys, last) = claim_keys(store, 5, ROUND_START, &[]).await;
            assert_eq!(keys, ["1/1", "2/5000", "3/6000", "1/2", "3/7000"]);
            add(store, &[lane(2, 9_000, None)]).await;
            assert_eq!(
                claim_keys(store, 1, 1, &[]).await.0,
                ["2/9000"],
                "the taxpayer after the last one served"
            );
            assert_eq!(
                claim_keys(store, 1, last, &[]).await.0,
                ["1/3"],
                "and round again"
            );
        }
    }

    #[tokio::test]
    async fn one_lane_of_a_taxpayer_waits_one_round_however_much_the_others_have() {
        for test in stores().await {
            let store = &test.store;
            let crowd: Vec<_> = (1..=40)
                .flat_map(|taxpayer| (0..10).map(move |n| lane(taxpayer, n, None)))
                .collect();
            add(store, &crowd).await;
            add(store, &[lane(41, 1_000_000, None)]).await;
            let mut last = 20;
            let mut before = 0;
            loop {
                let (keys, now_last) = claim_keys(store, 8, last, &[]).await;
                if keys.iter().any(|key| key.starts_with("41/")) {
                    break;
                }
                before += keys.len();
                last = now_last;
            }
            assert!(before <= 40, "{before} went first");
        }
    }

    #[tokio::test]
    async fn a_taxpayer_is_given_no_more_than_its_share_and_the_others_go_on() {
        for test in stores().await {
            let store = &test.store;
            add(
                store,
                &(0..20).map(|n| lane(1, n, None)).collect::<Vec<_>>(),
            )
            .await;
            add(store, &[lane(2, 5, None)]).await;
            add(
                store,
                &(0..3)
                    .map(|n| lane(NO_TAXPAYER, n, None))
                    .collect::<Vec<_>>(),
            )
            .await;
            let owners = async |limit, held: &[(i64, usize)]| {
                let share = FairShare {
                    taxpayer_max: 6,
                    held: held.iter().copied().collect(),
                    ..FairShare::without_limits()
                };
                let request = ClaimRequest {
                    kind: LaneKind::Run,
                    owner: "me",
                    lease: LEASE,
                    limit,
                    after_taxpayer: NO_TAXPAYER,
                    blocked: &[],
                    share,
                };
                let mut owners: Vec<_> = claim_due(store, &request)
                    .await
                    .unwrap()
                    .lanes
                    .iter()
                    .map(|turn| turn.taxpayer_id)
                    .collect();
                owners.sort_unstable();
                owners
            };
            assert_eq!(
                owners(1, &[(1, 6), (2, 1)]).await,
                [2],
                "a taxpayer that holds its share is skipped"
            );
            assert_eq!(
                owners(8, &[(1, 4), (NO_TAXPAYER, 9)]).await,
                [0, 0, 0, 1, 1]
            );
            assert_eq!(owners(8, &[]).await, [1; 6]);
            assert_eq!(owners(8, &[(1, 6)]).await, [0; 0]);
        }
    }

    #[tokio::test]
    async fn a_turn_reads_the_lanes_of_its_taxpayer_only() {
        for test in stores().await {
            let store = &test.store;
            let blocked = [blocked_for("sign", None)];
            for (taxpayers, blocked) in [
                (&[1_i64][..], &[][..]),
                (&[1, 2, 3][..], &[][..]),
                (&[1, 2][..], &blocked[..]),
            ] {
                let request = request(8, ROUND_START, blocked);
                let sql = urgent_lanes_sql(store.backend(), &request, taxpayers);
                let ids = taxpayers.iter().map(|id| Value::from(*id));
                let values = [Value::from(LaneKind::Run.as_str())].into_iter().chain(ids);
                let plan = query_plan(store, &sql, values).await.join("\n");
                // PostgreSQL goes by its statistics, and knows no rows here.
                if store.backend() == DbBackend::Sqlite {
                    let turn = "USING INDEX lanes_in_turn (kind=? AND taxpayer_id=?)";
                    assert_eq!(plan.matches(turn).count(), taxpayers.len(), "{plan}");
                    assert!(!plan.contains("TEMP B-TREE"), "{plan}");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_claim_looks_its_lanes_up_by_their_keys() {
        // SQLite only: PostgreSQL's plan depends on the number of lanes.
        for test in stores().await.into_iter().take(1) {
            let backend = test.store.backend();
            let free = claim::select_free_lanes(LaneKind::Run, &sql::now(backend))
                .and_where(Expr::col("key").is_in(["1/1", "1/2"]))
                .and_where(Expr::col("lease_until").is_null())
                .to_owned();
            let Statement { sql, values, .. } = backend.build(&free);
            let values = values.map(|values| values.0).unwrap_or_default();
            let plan = query_plan(&test.store, &sql, values).await.join("\n");
            assert!(plan.contains("(kind=? AND key=?)"), "{plan}");
        }
    }

    #[tokio::test]
    async fn a_blocked_lane_keeps_its_place() {
        for test in stores().await {
            let store = &test.store;
            let lanes = [
                lane(1, 10, Some("sign")),
                lane(1, 20, Some("confirm")),
                lane(2, 5, Some("sign")),
            ];
            add(store, &lanes).await;
            assert_eq!(
                claim_keys(store, 8, ROUND_START, &[blocked_for("sign", None)])
                    .await
                    .0,
                ["1/20"]
            );
            assert_eq!(
                claim_keys(store, 8, ROUND_START, &[blocked_for("sign", None)])
                    .await
                    .0,
                [""; 0]
            );
            assert_eq!(
                claim_keys(store, 8, ROUND_START, &[blocked_for("health", None)])
                    .await
                    .0,
                ["1/10", "2/5"]
            );
        }
    }

    #[tokio::test]
    async fn a_step_blocked_for_some_taxpayers_is_not_blocked_for_others() {
        for test in stores().await {
            let store = &test.store;
            add(
                store,
                &[
                    lane(1, 10, Some("sign")),
                    lane(1, 20, None),
                    lane(2, 5, Some("sign")),
                ],
            )
            .await;
            let blocked = [
                blocked_for("sign", Some(&[1, 7])),
                blocked_for("confirm", Some(&[])),
            ];
            assert_eq!(
                claim_keys(store, 8, ROUND_START, &blocked).await.0,
                ["1/20", "2/5"]
            );
            assert_eq!(claim_keys(store, 8, ROUND_START, &[]).await.0, ["1/10"]);
        }
    }

    #[test]
    fn a_step_is_unblocked_for_the_taxpayers_no_longer_listed() {
        let all = blocked_for("a", None);
        let one = blocked_for("a", Some(&[1]));
        let both = blocked_for("a", Some(&[1, 2]));
        let nobody = blocked_for("a", Some(&[]));
        for (before, now, opens) in [
            (&all, vec![], true),
            (&all, vec![all.clone()], false),
            (&all, vec![one.clone()], true),
            (&one, vec![all.clone()], false),
            (&one, vec![both.clone()], false),
            (&both, vec![one.clone()], true),
            (&one, vec![blocked_for("b", None)], true),
            (&nobody, vec![], true),
            (&nobody, vec![nobody.clone()], false),
            (&nobody, vec![one.clone()], false),
            (&one, vec![nobody.clone()], true),
        ] {
            assert_eq!(
                before.is_unblocked_for_any_taxpayer(&now),
                opens,
                "{before:?} {now:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_lane_that_waits_for_a_step_is_due_when_the_step_is_unblocked() {
        for test in stores().await {
            let store = &test.store;
            add(
                store,
                &[
                    lane(1, 9, Some("sign")),
                    lane(1, 3, Some("sign")),
                    lane(1, 1, Some("send")),
                ],
            )
            .await;
            let leases = claim_leases(store, 8).await;
            let tx = store.begin().await.unwrap();
            let waits = |lease: &Lease| LaneRelease {
                next_step: Some(if lease.key == "1/1" { "send" } else { "sign" }),
                ..LaneRelease::new(lease, Some(Duration::from_mins(5)))
            };
            leases::release(&tx, &leases.iter().map(waits).collect::<Vec<_>>())
                .await
                .unwrap();
            tx.commit().await.unwrap();
            assert_eq!(claim_keys(store, 8, ROUND_START, &[]).await.0.len(), 0);
            hasten_signs(store, &[blocked_for("sign", Some(&[1]))])
                .await
                .unwrap();
            assert_eq!(
                claim_keys(store, 8, ROUND_START, &[]).await.0.len(),
                0,
                "it is still blocked for this taxpayer"
            );
            hasten_signs(store, &[]).await.unwrap();
            assert_eq!(
                claim_keys(store, 8, ROUND_START, &[]).await.0,
                ["1/3", "1/9"],
                "the most urgent first"
            );
        }
    }

    #[tokio::test]
    async fn a_lane_that_is_blocked_or_not_due_is_skipped_and_keeps_its_next_step() {
        for test in stores().await {
            let store = &test.store;
            add(store, &[lane(1, 1, None), lane(1, 2, None)]).await;
            let leases = claim_leases(store, 2).await;
            assert_eq!(
                (
                    leases.len(),
                    claim_keys(store, 2, ROUND_START, &[]).await.0.len()
                ),
                (2, 0)
            );
            let tx = store.begin().await.unwrap();
            let due = LaneRelease {
                next_step: Some("sign"),
                ..LaneRelease::new(&leases[0], Some(Duration::ZERO))
            };
            let not_due = LaneRelease::new(&leases[1], Some(Duration::from_mins(1)));
            leases::release(&tx, &[due, not_due]).await.unwrap();
            tx.commit().await.unwrap();
            assert_eq!(
                claim_keys(store, 2, ROUND_START, &[blocked_for("sign", None)])
                    .await
                    .0
                    .len(),
                0
            );
            assert_eq!(
                views::due_groups(store, LaneKind::Run).await.unwrap(),
                [DueLaneGroup {
                    taxpayer: 1,
                    next_step: Some("sign".to_owned()),
                    due: 1,
                }]
            );
            let ahead_of = async |deadline, key| {
                views::count_more_urgent_lanes(store, LaneKind::Run, 1, deadline, key)
                    .await
                    .unwrap()
            };
            assert_eq!(ahead_of(2, "").await, 1);
            assert_eq!(ahead_of(1, "").await, 0);
            assert_eq!(
                ahead_of(1, "2").await,
                1,
                "of equal deadlines the lesser key is first"
            );
            assert_eq!(claim_keys(store, 2, ROUND_START, &[]).await.0, ["1/1"]);
        }
    }

    #[tokio::test]
    async fn of_lanes_with_one_deadline_the_oldest_is_first_even_if_it_was_put_back() {
        for test in stores().await {
            let store = &test.store;
            for number in ["1/old", "1/new"] {
                let lane = QueuedLane {
                    key: number.to_owned(),
                    ..lane(1, 5, Some("sign"))
                };
                add(store, &[lane]).await;
            }
            let put_back = async |lease: &Lease, next_claim| {
                let release = LaneRelease {
                    next_claim,
                    ..LaneRelease::new(lease, Some(Duration::ZERO))
                };
                let tx = store.begin().await.unwrap();
                leases::release(&tx, &[release]).await.unwrap();
                tx.commit().await.unwrap();
            };
            let old = claim_leases(store, 1).await.remove(0);
            assert_eq!(old.key, "1/old");
            put_back(&old, NextClaim::InPlace).await;
            let again = claim_leases(store, 1).await.remove(0);
            assert_eq!(again.key, "1/old", "it keeps its place");
            put_back(&again, NextClaim::Ordinary).await;
            let other = claim_leases(store, 1).await.remove(0);
            assert_eq!(other.key, "1/new", "the other one has none");
        }
    }

    #[tokio::test]
    async fn concurrent_claims_never_return_the_same_lane() {
        for test in stores().await {
            let store = &test.store;
            add(
                store,
                &(0..200).map(|n| lane(n % 7, n, None)).collect::<Vec<_>>(),
            )
            .await;
            let all = async |owner: &'static str| {
                let mut keys = Vec::new();
                let mut after = ROUND_START;
                for _ in 0..40 {
                    let request = ClaimRequest {
                        kind: LaneKind::Run,
                        owner,
                        lease: LEASE,
                        limit: 10,
                        after_taxpayer: after,
                        blocked: &[],
                        share: FairShare::without_limits(),
                    };
                    let taken = claim_due(store, &request).await.unwrap();
                    keys.extend(taken.lanes.into_iter().map(|turn| turn.lane.lease.key));
                    after = taken.last_taxpayer.unwrap_or(after);
                }
                keys
            };
            let (one, other) = tokio::join!(all("one"), all("other"));
            let mut keys: Vec<_> = one.into_iter().chain(other).collect();
            assert_eq!(keys.len(), 200);
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), 200, "each once");
        }
    }

    #[tokio::test]
    async fn lanes_and_leases_from_before_a_clock_was_set_back_are_free_again() {
        const SET_BACK: Duration = Duration::from_mins(10);
        for test in stores().await {
            let store = &test.store;
            let keys = ["1", "2"].map(str::to_owned);
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let claim = async |lease| {
                testing::claim_due(store, LaneKind::Endpoint, "me", lease, 9)
                    .await
                    .unwrap()
            };
            let claimed = claim(SET_BACK + LEASE).await;
            let tx = store.begin().await.unwrap();
            leases::release(&tx, &[LaneRelease::new(&claimed[0], Some(SET_BACK))])
                .await
                .unwrap();
            tx.commit().await.unwrap();
            assert_eq!(
                claim(LEASE).await,
                [],
                "one waits, and the holder of the other seems to live"
            );
            assert_eq!(
                lanes::make_waiting_due(store, WaitingLanes::All)
                    .await
                    .unwrap(),
                1
            );
            let again = claim(LEASE).await;
            assert_eq!((again.len(), &again[0].key), (1, &claimed[0].key));
            assert_eq!(
                leases::end_leases(store, LeasesToEnd::Beyond(LEASE * 2))
                    .await
                    .unwrap(),
                1,
                "not what is held now"
            );
            let tx = store.begin().await.unwrap();
            lanes::wake(
                &tx,
                LaneKind::Endpoint,
                &["3".to_owned()],
                LanesToWake::WithoutHolder,
            )
            .await
            .unwrap();
            tx.commit().await.unwrap();
            assert_eq!(claim(LEASE).await.len(), 2);
        }
    }
}
