//! Lanes. A lane is a row that makes sure that only one worker at a time acts on something, such as a taxpayer, a
//! pipeline run or a webhook endpoint. A writer either locks the row or holds a lease on it and checks the epoch of
//! that lease. Leases use the database's clock only, so replicas need not agree on the time. The code here does
//! not know what the work of a lane is.
//!
//! A released lane has no `lease_until`. An expired lease means that the process that held the lane crashed;
//! the next claim adds one to the lane's `crashes`.

pub mod abandoned;
pub mod claim;
pub mod fair_queue;
pub mod group;
pub mod leases;
pub mod owners;

pub use self::group::{Wake, wake};

use std::time::Duration;

use sea_orm::sea_query::{
    CommonTableExpression, Expr, ExprTrait, LockBehavior, LockType, OnConflict, Query, SelectStatement,
    UpdateStatement,
};
use sea_orm::{Condition, ConnectionTrait, DbBackend};

use crate::store::db::connections::{Store, Transaction};
use crate::store::db::error::StoreError;
use crate::store::db::sql;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaneKind {
    Taxpayer,
    Run,
    Endpoint,
    /// The reading of the authority's list of invoices in transit. One replica does it for all replicas.
    Pull,
    /// The notification of one taxpayer of the start or the end of an outage. Writers of outages lock one more lane.
    Outage,
    /// The reconciliation of one taxpayer with the authority. One more lane is the timer of all replicas.
    Reconciliation,
    /// The verification of one taxpayer with the authority.
    Verification,
}

impl LaneKind {
    pub const ALL: [Self; 7] = [
        Self::Taxpayer,
        Self::Run,
        Self::Endpoint,
        Self::Pull,
        Self::Outage,
        Self::Reconciliation,
        Self::Verification,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Taxpayer => "taxpayer",
            Self::Run => "run",
            Self::Endpoint => "endpoint",
            Self::Pull => "pull",
            Self::Outage => "outage",
            Self::Reconciliation => "reconciliation",
            Self::Verification => "verification",
        }
    }
}

/// A claim on a lane. It is valid until it expires or another process claims the lane. Every write under this
/// lease checks that the lane still has this epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    pub kind: LaneKind,
    pub key: String,
    pub epoch: i64,
}

/// A claimed lane and the state that the previous holder of the lane left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedLane {
    pub lease: Lease,
    /// How many processes in a row crashed while they held the lane.
    pub crashes: u32,
    /// The piece of work that the previous holder recorded as in progress (`abandoned::set_working_on`).
    pub working_on: Option<String>,
}

/// The `lease_until` of a lane whose lease has ended, however long it was. A lane that goes alone has it, too, and no
/// owner (`abandoned`). The value means a lease that expired in 1970.
pub(super) const ABANDONED: i64 = 0;

/// The `next_step` of the lane of a parked endpoint. New work does not wake such a lane before its due time.
pub const PROBE: &str = "probe";

/// Locks a lane for the rest of the transaction and increments its version. Creates the lane if it does not
/// exist. Returns the new version.
pub async fn lock(tx: &Transaction, kind: LaneKind, key: &str) -> Result<i64, StoreError> {
    let statement = Query::insert()
        .into_table("lanes")
        .columns(["kind", "key", "epoch", "version"])
        .values_panic([kind.as_str().into(), key.into(), 0_i64.into(), 1_i64.into()])
        .on_conflict(
            OnConflict::columns(["kind", "key"])
                .value("version", Expr::col(("lanes", "version")).add(1_i64))
                .to_owned(),
        )
        .returning_col("version")
        .to_owned();
    let row = tx.query_one(&statement).await?.ok_or(StoreError::Stale)?;
    Ok(row.try_get("", "version")?)
}

/// Returns the version of a lane, which the next lock increments. `None` if the lane does not exist.
pub async fn version(tx: &Transaction, kind: LaneKind, key: &str) -> Result<Option<i64>, StoreError> {
    let statement = Query::select()
        .column("version")
        .from("lanes")
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::col("key").eq(key))
        .to_owned();
    let row = tx.query_one(&statement).await?;
    Ok(row.map(|row| row.try_get("", "version")).transpose()?)
}

/// Locks a lane for the rest of the transaction without incrementing its version.
pub async fn lock_unversioned(tx: &Transaction, kind: LaneKind, key: &str) -> Result<(), StoreError> {
    let statement = Query::update()
        .table("lanes")
        .value("epoch", Expr::col("epoch"))
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::col("key").eq(key))
        .to_owned();
    tx.execute(&statement).await?;
    Ok(())
}

/// Claims the lanes that the query `free` selects. Skips lanes that another process has locked.
pub(super) async fn claim_where(
    store: &Store,
    kind: LaneKind,
    owner: &str,
    lease: Duration,
    free: SelectStatement,
) -> Result<Vec<LeasedLane>, StoreError> {
    execute(store, kind, &claim_statement(store.backend(), kind, owner, lease, free)).await
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
            let lease = Lease { kind, key: row.try_get("", "key")?, epoch: row.try_get("", "epoch")? };
            let crashes: i32 = row.try_get("", "crashes")?;
            let crashes = u32::try_from(crashes).unwrap_or(0);
            Ok(LeasedLane { lease, crashes, working_on: row.try_get("", "working_on")? })
        })
        .collect()
}

/// Builds the statement that claims the lanes of the query `free`. A materialised expression runs that query
/// once; PostgreSQL could otherwise repeat it for each lane.
fn claim_statement(
    backend: DbBackend,
    kind: LaneKind,
    owner: &str,
    lease: Duration,
    mut free: SelectStatement,
) -> UpdateStatement {
    free.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
    let found = CommonTableExpression::new().query(free).table_name("free").materialized(true).to_owned();
    Query::update()
        .with_cte(Query::with().cte(found).to_owned())
        .table("lanes")
        .value("owner", owner)
        .value("epoch", Expr::col("epoch").add(1_i64))
        .value("lease_until", later(&sql::now(backend), lease))
        .value("crashes", crashes(owner))
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::col("key").in_subquery(Query::select().column("key").from("free").to_owned()))
        .returning(Query::returning().columns(["key", "epoch", "crashes", "working_on"]))
        .to_owned()
}

/// The number of crashes of a lane after this owner claims it. An expired lease of another owner adds one
/// crash. An expired lease of the same owner adds none: its process is alive and only lost the lease.
fn crashes(owner: &str) -> Expr {
    let is_left = Expr::col("lease_until").is_not_null().and(Expr::col("owner").ne(owner));
    Expr::col("crashes").add(Expr::case(is_left, 1).finally(0))
}

/// Selects the lanes of this kind that are due and free: released, or with an expired lease.
pub(super) fn free(kind: LaneKind, now: &Expr) -> SelectStatement {
    Query::select()
        .column("key")
        .from("lanes")
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::col("next_due_at").lte(now.clone()))
        .and_where(Expr::col("lease_until").is_null().or(Expr::col("lease_until").lt(now.clone())))
        .to_owned()
}

/// Locks a held lane for the rest of the transaction. Fails with `Stale` if another process has claimed the
/// lane.
pub async fn fence(tx: &Transaction, lease: &Lease) -> Result<(), StoreError> {
    let statement = update_held(lease).value("version", Expr::col("version").add(1_i64)).to_owned();
    stale_if_none(tx.execute(&statement).await?.rows_affected())
}

/// Extends a lease, so that it ends after the duration `by` from now. Does nothing if the lease is no longer
/// held.
pub(super) async fn prolong(store: &Store, lease: &Lease, by: Duration) -> Result<(), StoreError> {
    let until = later(&sql::now(store.backend()), by);
    let statement = update_held(lease)
        .value("lease_until", until)
        .and_where(Expr::col("lease_until").is_not_null())
        .to_owned();
    let tx = store.begin().await?;
    tx.execute(&statement).await?;
    tx.commit().await
}

/// Deletes a held lane whose work will never be due again.
pub async fn remove(tx: &Transaction, lease: &Lease) -> Result<(), StoreError> {
    let statement = Query::delete().from_table("lanes").cond_where(held_condition(lease)).to_owned();
    stale_if_none(tx.execute(&statement).await?.rows_affected())
}

pub(super) fn update_held(lease: &Lease) -> UpdateStatement {
    Query::update().table("lanes").cond_where(held_condition(lease)).to_owned()
}

fn held_condition(lease: &Lease) -> Condition {
    Condition::all()
        .add(Expr::col("kind").eq(lease.kind.as_str()))
        .add(Expr::col("key").eq(lease.key.as_str()))
        .add(Expr::col("epoch").eq(lease.epoch))
}

pub(super) fn stale_if_none(rows: u64) -> Result<(), StoreError> {
    if rows == 0 { Err(StoreError::Stale) } else { Ok(()) }
}

pub(super) fn later(now: &Expr, by: Duration) -> Expr {
    now.clone().add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX / 4))
}

#[cfg(test)]
mod tests {
    use sea_orm::Statement;

    use super::*;
    use crate::store::testing::{query_plan, stores};

    #[tokio::test]
    async fn free_lanes_are_looked_for_once() {
        for test in stores().await {
            let backend = test.store.backend();
            let free = free(LaneKind::Endpoint, &sql::now(backend)).limit(8).to_owned();
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
            assert!(!steps.iter().any(|step| step.contains("CORRELATED")), "{steps:?}");
        }
    }
}
