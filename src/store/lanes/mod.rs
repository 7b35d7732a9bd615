//! Lanes. A lane is a row that ensures that only one worker at a time acts on something, such as a taxpayer, a pipeline
//! run or a webhook endpoint. A writer either locks the row for its transaction, or holds a lease on it and checks the
//! lease's epoch in each transaction. Leases use the database's clock only, so the clocks of replicas may differ. The
//! code here does not know what work belongs to a lane.
//!
//! A released lane has no `lease_until`. An expired lease means that the process that held the lane crashed. The next
//! claim then adds one to the lane's `crashes`.
//!
//! | File | Content |
//! |---|---|
//! | `abandoned` | claims of lanes whose lease has ended |
//! | `claim` | claims of lanes: of due lanes, of lanes whose lease has ended (`abandoned`), and of idle lanes that get new work |
//! | `fair_queue` | fair claims of due lanes, from each taxpayer in turn |
//! | `leases` | leases of lanes: the holder checks, renews and releases its lease |
//! | `lock` | locks of lanes, which last until the transaction ends |
//! | `probe_claim` | claims of one lane for each probe of a blocked step |
//! | `views` | the state of lanes for pages and metrics: the holder of a lane, and the numbers of lanes that wait |
//! | `wake` | makes lanes due: because of new work, at the start of a process, or because a step is no longer blocked |

pub mod abandoned;
pub mod claim;
pub mod fair_queue;
pub mod leases;
mod lock;
pub mod probe_claim;
pub mod views;
mod wake;

pub use self::lock::{IfLocked, LockedLanes, await_release, lock, lock_keeping_versions};
pub use self::wake::{LanesToWake, QueuedLane, WaitingLanes, enqueue, make_waiting_due, wake};

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
    /// Reading the authority's list of invoices in transit. One replica at a time does it for all.
    Pull,
    /// Notifying one taxpayer of the start or the end of an outage. Writers of outages lock one additional lane of this
    /// kind.
    Outage,
    /// The reconciliation of one taxpayer with the authority. One additional lane holds the time of the next periodic
    /// reconciliation of all taxpayers.
    Reconciliation,
    /// The verification of one taxpayer with the authority.
    Verification,
    /// The import of one large file of a taxpayer.
    Import,
    /// The correction of one signed invoice.
    Correction,
    /// Writing and sending mails and, in a second lane, posting to chats. One replica at a time does each for all.
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

/// A lease on a lane. It is valid until it expires or another process claims the lane. Every write under this lease
/// checks that the lane still has this epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    pub kind: LaneKind,
    pub key: String,
    pub epoch: i64,
}

/// A leased lane, with the state that its previous holder left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedLane {
    pub lease: Lease,
    /// The number of processes in a row that crashed while they held the lane.
    pub crashes: u32,
    /// The piece of work that the previous holder recorded as in progress (`leases::write_note`).
    pub working_on: Option<String>,
}

/// The rows that a lateral join locks (`Dialect::lateral_lock`): lanes.
const LOCKED_LANES: LockedRows = LockedRows {
    table: "lanes",
    columns: "key, epoch",
};

/// The value of `lease_until` that marks a lease as ended, whatever its length was. It is in the year 1970. An isolated
/// lane has this value, too, but no owner (`abandoned`).
pub(super) const ABANDONED_LEASE_UNTIL: i64 = 0;

/// The value of `next_step` for the lane of a parked endpoint, which gets only single deliveries as probes after many
/// failures. New work does not make such a lane due before its time.
pub const PROBE_STEP: &str = "probe";

/// Deletes lanes whose work has ended for good. A process that holds one of them loses its lease. The caller must have
/// locked the lanes.
pub async fn remove(tx: &Transaction, kind: LaneKind, keys: &[String]) -> Result<(), StoreError> {
    let statement = Query::delete()
        .from_table("lanes")
        .and_where(Expr::col("kind").eq(kind.as_str()))
        .and_where(Expr::col("key").is_in(keys.iter().map(String::as_str)))
        .to_owned();
    tx.execute(&statement).await?;
    Ok(())
}

fn time_after(now: &Expr, by: Duration) -> Expr {
    now.clone()
        .add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX / 4))
}

/// Builds a statement on the lanes of the kind `$1` with the keys in the JSON list `$2`. `more` holds the values of the
/// further parameters.
fn statement_on_keys<const N: usize>(
    tx: &Transaction,
    sql: &SqlOnce,
    kind: LaneKind,
    keys: &[String],
    more: [Value; N],
) -> Statement {
    let backend = tx.get_database_backend();
    // Each key is put into a list of its own, so that both databases can read it as text with the same operator, `->>`.
    let keys: Vec<_> = keys.iter().map(|key| [key]).collect();
    let values = [kind.as_str().into(), json(&keys).into()]
        .into_iter()
        .chain(more);
    Statement::from_sql_and_values(backend, sql.get(backend), values)
}
