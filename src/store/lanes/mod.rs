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
pub mod leases;
mod lock;
pub mod views;
mod wake;

pub use self::lock::{IfTaken, LockedLanes, await_release, lock, lock_unversioned};
pub use self::wake::{QueuedLane, WaitingLanes, Wake, enqueue, make_waiting_due, wake};

use std::time::Duration;

use database::column::json;
use database::sql::{LockedRows, SqlOnce};
use database::{StoreError, Transaction};
use sea_orm::sea_query::{Expr, ExprTrait, Query};
use sea_orm::{ConnectionTrait, Statement, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LaneKind {
    Taxpayer,
    Run,
    Endpoint,
    /// The reading of the authority's list of invoices in transit. One replica does it for all replicas.
    Pull,
    /// The notification of one taxpayer of the start or the end of an outage. One extra lane of this kind is locked by
    /// writers of outages.
    Outage,
    /// The reconciliation of one taxpayer with the authority. One extra lane, which all replicas share, holds the time
    /// of the next periodic reconciliation.
    Reconciliation,
    /// The verification of one taxpayer with the authority.
    Verification,
    /// The import of one large file of a taxpayer.
    Import,
    /// The correction of one signed invoice.
    Correction,
    /// The writing and sending of mails, and, in a lane of its own, the posting to chats. One replica does each of them for
    /// all replicas.
    Mail,
}

impl LaneKind {
    pub const ALL: [Self; 10] = [
        Self::Taxpayer,
        Self::Run,
        Self::Endpoint,
        Self::Pull,
        Self::Outage,
        Self::Reconciliation,
        Self::Verification,
        Self::Import,
        Self::Correction,
        Self::Mail,
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
            Self::Import => "import",
            Self::Correction => "correction",
            Self::Mail => "mail",
        }
    }
}

/// The name of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LaneName {
    pub kind: LaneKind,
    pub key: String,
}

impl LaneName {
    pub fn new(kind: LaneKind, key: impl Into<String>) -> Self {
        Self {
            kind,
            key: key.into(),
        }
    }
}

impl From<&Lease> for LaneName {
    fn from(lease: &Lease) -> Self {
        Self::new(lease.kind, lease.key.as_str())
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
    /// The piece of work that the previous holder recorded as in progress (`leases::write_note`).
    pub working_on: Option<String>,
}

/// The rows that a lateral join locks (`Dialect::lateral_lock`): lanes.
const LOCKED_LANES: LockedRows = LockedRows {
    table: "lanes",
    columns: "key, epoch",
};

/// The `lease_until` that marks a lease as ended, whatever its length was: the lease expired in 1970. An isolated lane
/// has this value, too, and no owner (`abandoned`).
pub(super) const ABANDONED_LEASE_UNTIL: i64 = 0;

/// The `next_step` of the lane of a parked endpoint: after many failures, it gets only one delivery now and then, as a
/// probe. New work does not wake such a lane before its due time.
pub const PROBE_STEP: &str = "probe";

/// Deletes lanes whose work has ended for good. Whoever holds one of them loses its lease. The caller must hold the locks
/// of the lanes.
pub async fn remove(tx: &Transaction, kind: LaneKind, keys: &[String]) -> Result<(), StoreError> {
    let statement = Query::delete()
        .from_table("lanes")
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::col("key").is_in(keys.iter().map(String::as_str)))
        .to_owned();
    tx.execute(&statement).await?;
    Ok(())
}

fn later(now: &Expr, by: Duration) -> Expr {
    now.clone()
        .add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX / 4))
}

/// Builds a statement on the lanes of the kind `$1` with the keys in the JSON list `$2`. The values `more` are the next
/// parameters.
fn statement_on_keys<const N: usize>(
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
    let values = [kind.as_str().into(), json(&keys).into()]
        .into_iter()
        .chain(more);
    Statement::from_sql_and_values(backend, sql.get(backend), values)
}
