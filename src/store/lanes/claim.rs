//! Claims of lanes: of due lanes, of lanes whose lease has ended (`abandoned`), and of idle lanes that get new work. A
//! claim gives the claiming process a lease.

use std::collections::HashMap;
use std::time::Duration;

use database::sql::{self, SqlOnce};
use database::{StoreError, Transaction};
use sea_orm::sea_query::{
    CommonTableExpression, Expr, ExprTrait, LockBehavior, LockType, Query, SelectStatement,
    UpdateStatement,
};
use sea_orm::{ConnectionTrait, DbBackend, QueryResult};

use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::lanes::abandoned::LanesWithEndedLease;
use crate::store::lanes::fair_queue::{self, BlockedStep};
use crate::store::lanes::{
    LOCKED_LANES, LaneKind, Lease, LeasedLane, PROBE_STEP, statement_on_keys, time_after,
};

/// The value of `ClaimRequest::after_taxpayer` that starts a round at the first taxpayer. It is less than every
/// taxpayer id.
pub const ROUND_START: i64 = -1;
/// The taxpayer id of lanes without a taxpayer.
pub(super) const NO_TAXPAYER: i64 = 0;

/// The kinds of lanes that a claim can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimableLanes {
    /// Lanes that are due and have no holder.
    Due,
    /// Lanes that are due and whose lease has ended.
    Ended(LanesWithEndedLease),
}

#[derive(Debug, Clone)]
pub struct ClaimRequest<'a> {
    pub kind: LaneKind,
    pub owner: &'a str,
    pub lease: Duration,
    pub limit: usize,
    /// The id of the taxpayer that the previous claim served last. This claim starts with the next higher id.
    pub after_taxpayer: i64,
    pub blocked: &'a [BlockedStep],
    pub share: FairShare,
}

/// The limits on the lanes that one taxpayer, and one integrator with all its taxpayers, may hold at a time, so that
/// slow work of one leaves room for others. Lanes without a taxpayer are not limited.
#[derive(Debug, Clone)]
pub struct FairShare {
    pub taxpayer_max: usize,
    /// The number of lanes that this process holds now, by taxpayer id.
    pub held: HashMap<i64, usize>,
    pub integrator_max: usize,
    /// The number of lanes that this process holds now, by integrator.
    pub held_by_integrator: HashMap<IntegratorId, usize>,
}

impl FairShare {
    #[cfg(test)]
    pub fn without_limits() -> Self {
        Self {
            taxpayer_max: usize::MAX,
            held: HashMap::new(),
            integrator_max: usize::MAX,
            held_by_integrator: HashMap::new(),
        }
    }

    /// Returns how many more lanes the taxpayer may hold.
    pub(super) fn remaining_lanes(&self, taxpayer: i64) -> usize {
        if taxpayer == NO_TAXPAYER {
            return usize::MAX;
        }
        self.taxpayer_max
            .saturating_sub(self.held.get(&taxpayer).copied().unwrap_or(0))
    }

    /// Returns the SQL condition that neither a lane's taxpayer nor its integrator has reached its limit, beginning
    /// with `AND`. Empty if nobody has reached the limit.
    pub(super) fn below_limit_condition(&self) -> String {
        let full: Vec<_> = self
            .held
            .keys()
            .filter(|id| self.remaining_lanes(**id) == 0)
            .map(ToString::to_string)
            .collect();
        let taxpayers = match full.as_slice() {
            [] => String::new(),
            full => format!(" AND lanes.taxpayer_id NOT IN ({})", full.join(", ")),
        };
        let full: Vec<_> = self
            .held_by_integrator
            .keys()
            .filter(|id| self.remaining_lanes_for_integrator(**id) == 0)
            .map(ToString::to_string)
            .collect();
        match full.as_slice() {
            [] => taxpayers,
            full => format!(
                "{taxpayers} AND NOT EXISTS (SELECT 1 FROM taxpayers WHERE taxpayers.id = lanes.taxpayer_id \
                 AND taxpayers.integrator_id IN ({}))",
                full.join(", ")
            ),
        }
    }

    /// Returns how many more lanes the integrator may hold with all its taxpayers.
    fn remaining_lanes_for_integrator(&self, integrator: IntegratorId) -> usize {
        let held = self
            .held_by_integrator
            .get(&integrator)
            .copied()
            .unwrap_or(0);
        self.integrator_max.saturating_sub(held)
    }

    /// Returns the lanes without those that would exceed the limit of their integrator.
    pub(super) async fn drop_over_integrator_limit(
        &self,
        store: &Store,
        lanes: Vec<FoundLane>,
    ) -> Result<Vec<FoundLane>, StoreError> {
        if self.integrator_max == usize::MAX {
            return Ok(lanes);
        }
        let mut added: HashMap<IntegratorId, usize> = HashMap::new();
        let mut kept = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let taxpayer = lane.taxpayer_id;
            if taxpayer != NO_TAXPAYER
                && let Some(integrator) = taxpayers::load_payer(store, TaxpayerId(taxpayer)).await?
            {
                let added = added.entry(integrator).or_default();
                if *added >= self.remaining_lanes_for_integrator(integrator) {
                    continue;
                }
                *added += 1;
            }
            kept.push(lane);
        }
        Ok(kept)
    }
}

/// A lane that a query has found and that may be claimed.
pub(super) struct FoundLane {
    pub(super) taxpayer_id: i64,
    pub(super) key: String,
}

impl TryFrom<&QueryResult> for FoundLane {
    type Error = StoreError;

    fn try_from(row: &QueryResult) -> Result<Self, StoreError> {
        Ok(Self {
            taxpayer_id: row.try_get("", "taxpayer_id")?,
            key: row.try_get("", "key")?,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedLane {
    pub taxpayer_id: i64,
    pub lane: LeasedLane,
}

/// The claimed lanes, in the order in which to process them. The next claim of due lanes starts after `last_taxpayer`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClaimedLanes {
    pub lanes: Vec<ClaimedLane>,
    pub last_taxpayer: Option<i64>,
}

/// Claims up to `limit` lanes, from each taxpayer in turn, and at most as many as each taxpayer may still hold.
pub async fn claim(
    store: &Store,
    claimable: ClaimableLanes,
    request: &ClaimRequest<'_>,
) -> Result<ClaimedLanes, StoreError> {
    match claimable {
        ClaimableLanes::Due => fair_queue::claim_due(store, request).await,
        ClaimableLanes::Ended(ended) => ended.claim(store, request).await,
    }
}

/// Claims those of the lanes `found` that the query `free` selects, in the order of `found`.
pub(super) async fn claim_still_free(
    store: &Store,
    request: &ClaimRequest<'_>,
    found: Vec<FoundLane>,
    free: SelectStatement,
) -> Result<Vec<ClaimedLane>, StoreError> {
    let claimed = claim_selected(store, request.kind, request.owner, request.lease, free).await?;
    let mut claimed: HashMap<_, _> = claimed
        .into_iter()
        .map(|lane| (lane.lease.key.clone(), lane))
        .collect();
    let in_order = found.into_iter().filter_map(|found| {
        Some(ClaimedLane {
            taxpayer_id: found.taxpayer_id,
            lane: claimed.remove(&found.key)?,
        })
    });
    Ok(in_order.collect())
}

/// Claims the lanes that the query `free` selects. Lanes that another transaction has locked are skipped.
pub(crate) async fn claim_selected(
    store: &Store,
    kind: LaneKind,
    owner: &str,
    lease: Duration,
    free: SelectStatement,
) -> Result<Vec<LeasedLane>, StoreError> {
    execute(
        store,
        kind,
        &claim_statement(store.backend(), kind, owner, lease, free),
    )
    .await
}

async fn execute(
    store: &Store,
    kind: LaneKind,
    statement: &UpdateStatement,
) -> Result<Vec<LeasedLane>, StoreError> {
    let tx = store.begin().await?;
    let rows = tx.query_all(statement).await?;
    tx.commit().await?;
    rows.iter()
        .map(|row| {
            let lease = Lease {
                kind,
                key: row.try_get("", "key")?,
                epoch: row.try_get("", "epoch")?,
            };
            let crashes: i32 = row.try_get("", "crashes")?;
            let crashes = u32::try_from(crashes).unwrap_or(0);
            Ok(LeasedLane {
                lease,
                crashes,
                working_on: row.try_get("", "working_on")?,
            })
        })
        .collect()
}

/// Builds the statement that claims the lanes of the query `free`. The query is a materialised common table expression,
/// so that it runs once; otherwise PostgreSQL could repeat it for each lane.
fn claim_statement(
    backend: DbBackend,
    kind: LaneKind,
    owner: &str,
    lease: Duration,
    mut free: SelectStatement,
) -> UpdateStatement {
    free.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
    let found = CommonTableExpression::new()
        .query(free)
        .table_name("free")
        .materialized(true)
        .to_owned();
    Query::update()
        .with_cte(Query::with().cte(found).to_owned())
        .table("lanes")
        .value("owner", owner)
        .value("epoch", Expr::col("epoch").add(1_i64))
        .value("lease_until", time_after(&sql::now(backend), lease))
        .value("crashes", crashes_after_claim(owner))
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(
            Expr::col("key").in_subquery(Query::select().column("key").from("free").to_owned()),
        )
        .returning(Query::returning().columns(["key", "epoch", "crashes", "working_on"]))
        .to_owned()
}

/// Returns the number of a lane's crashes after this owner has claimed it. An expired lease of another owner adds one
/// crash. An expired lease of this owner adds none, because its process is alive and only lost the lease.
fn crashes_after_claim(owner: &str) -> Expr {
    let is_left = Expr::col("lease_until")
        .is_not_null()
        .and(Expr::col("owner").ne(owner));
    Expr::col("crashes").add(Expr::case(is_left, 1).finally(0))
}

/// Selects the due lanes of this kind that nobody holds: they have no lease, or an expired one. Callers usually
/// restrict the query to the keys of lanes that they found before. The unary plus in `+next_due_at` keeps SQLite off
/// the index of due lanes, through which it would read every due lane of the kind while other writers wait.
pub(crate) fn select_free_lanes(kind: LaneKind, now: &Expr) -> SelectStatement {
    Query::select()
        .column("key")
        .from("lanes")
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::cust("+next_due_at").lte(now.clone()))
        .and_where(
            Expr::col("lease_until")
                .is_null()
                .or(Expr::col("lease_until").lt(now.clone())),
        )
        .to_owned()
}

static CLAIM_IDLE: SqlOnce = SqlOnce::new(|dialect| {
    let now = dialect.clock();
    let idle = format!(
        " AND lanes.lease_until IS NULL \
         AND (lanes.next_step IS NULL OR lanes.next_step <> '{PROBE_STEP}' OR lanes.next_due_at <= {now})"
    );
    let rows = dialect.json_elements("$2", "rows");
    let given = format!("(SELECT value ->> 0 AS name FROM {rows} ORDER BY 1) AS given");
    let condition = format!("lanes.kind = $1 AND lanes.key = given.name{idle}");
    let found = dialect.lateral_lock(LOCKED_LANES, "FOR UPDATE", &condition);
    format!(
        "WITH found AS MATERIALIZED (SELECT lanes.key AS key FROM {given} {found}) \
         INSERT INTO lanes (kind, key, epoch, version) SELECT $1, found.key, 0, 0 FROM found WHERE TRUE \
         ON CONFLICT (kind, key) DO UPDATE SET owner = $3, epoch = lanes.epoch + 1, lease_until = {now} + $4, \
         next_due_at = {now} RETURNING lanes.key AS name, lanes.epoch AS epoch"
    )
});

/// Claims lanes in the transaction that adds work to them. Lanes are skipped if they do not exist, if they are held, or
/// if their endpoint is parked and waits for a probe.
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
    let rows = tx
        .query_all_raw(statement_on_keys(tx, &CLAIM_IDLE, kind, keys, values))
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

#[cfg(test)]
mod tests {
    use sea_orm::{Statement, Value};

    use super::*;
    use crate::store::lanes::leases::{self, LaneRelease};
    use crate::store::lanes::{self, LanesToWake};
    use crate::store::testing::{query_plan, stores};

    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test]
    async fn free_lanes_are_looked_for_once() {
        for test in stores().await {
            let backend = test.store.backend();
            let free = select_free_lanes(LaneKind::Endpoint, &sql::now(backend))
                .limit(8)
                .to_owned();
            let Statement { sql, values, .. } = backend.build(&claim_statement(
                backend,
                LaneKind::Endpoint,
                "me",
                Duration::from_secs(9),
                free,
            ));
            let once = match backend {
                DbBackend::Postgres => "CTE Scan on free",
                _ => "LIST SUBQUERY",
            };
            let plan_values = values.map(|values| values.0).unwrap_or_default();
            let steps = query_plan(&test.store, &sql, plan_values).await;
            assert!(steps.iter().any(|step| step.contains(once)), "{steps:?}");
            assert!(
                !steps.iter().any(|step| step.contains("CORRELATED")),
                "{steps:?}"
            );
        }
    }

    #[tokio::test]
    async fn new_work_takes_over_a_lane_that_is_free_and_awake() {
        for test in stores().await {
            let store = &test.store;
            let keys = ["7".to_owned()];
            let take = async || {
                let tx = store.begin().await.unwrap();
                let taken = claim_idle(&tx, LaneKind::Endpoint, &keys, "me", LEASE)
                    .await
                    .unwrap()
                    .pop();
                tx.commit().await.unwrap();
                taken
            };
            let rest = async |lease: Lease, next_step| {
                let release = LaneRelease {
                    next_step,
                    ..LaneRelease::new(&lease, Some(Duration::from_mins(1)))
                };
                let tx = store.begin().await.unwrap();
                leases::release(&tx, &[release]).await.unwrap();
                tx.commit().await.unwrap();
            };
            assert_eq!(take().await, None, "there is no such lane");
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::NotParked)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            let lease = take().await.unwrap();
            assert_eq!(
                (lease.key.as_str(), take().await),
                ("7", None),
                "it is held"
            );
            rest(lease, None).await;
            let lease = take()
                .await
                .expect("a lane that waits for another attempt has new work now");
            rest(lease, Some(lanes::PROBE_STEP)).await;
            assert_eq!(take().await, None, "it is parked");
            let tx = store.begin().await.unwrap();
            lanes::wake(&tx, LaneKind::Endpoint, &keys, LanesToWake::All)
                .await
                .unwrap();
            tx.commit().await.unwrap();
            assert_eq!(take().await.unwrap().epoch, 3);
        }
    }

    #[tokio::test]
    async fn each_idle_lane_is_found_by_its_key_however_few_there_are() {
        // PostgreSQL only: its plan depends on the number of lanes.
        for test in stores().await.into_iter().skip(1) {
            let store = &test.store;
            let values: [Value; 4] = [
                "endpoint".into(),
                "[[\"1\"]]".into(),
                "me".into(),
                1_i64.into(),
            ];
            let steps = query_plan(store, CLAIM_IDLE.get(store.backend()), values).await;
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
