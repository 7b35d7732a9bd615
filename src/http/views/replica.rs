//! The replicas, as operators see them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::breaker::BreakerFigures;
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::replica::{ActorTotals, Replica, ReplicaList, ReplicaState};

/// All replicas, as the answering replica last read them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ReplicaList)]
pub(crate) struct Replicas<'a> {
    /// The name of the replica that answers.
    pub(crate) answered_by: &'a str,
    /// The time at which the replicas were read, by the clock of the database; null if the database has not answered
    /// yet.
    pub(crate) read_at: Option<String>,
    pub(crate) replicas: Vec<ReplicaView<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplicaView<'a> {
    /// The id of the process, which is new after each start. The leases of the process carry it.
    id: &'a str,
    /// The host and the port, or the name in the settings.
    name: &'a str,
    /// `ready`, `degraded`, `not-ready`, `stopping` or `missing`. A degraded replica is ready.
    state: &'static str,
    /// The reason why the replica is not ready; null if it is ready.
    not_ready: Option<&'a str>,
    /// The reason why the replica is degraded, although it is ready; null if nothing is wrong.
    degraded: Option<&'a str>,
    version: &'a str,
    started_at: String,
    /// The time of the replica's last heartbeat, by the clock of the database.
    seen_at: String,
    /// The number of lanes that the replica holds.
    leases: u64,
    resident_bytes: Option<u64>,
    /// The time by which the replica's clock is ahead of the clock of the database, in milliseconds.
    clock_ahead_ms: i64,
    /// Number of requests that the replica answered within the last ten seconds. `p99_us` is the time in microseconds
    /// within which 99 of 100 of these requests were answered.
    requests: u64,
    p99_us: u64,
    /// Number of runs that ended within the last ten seconds. `delivery_attempts` is the number of attempts at
    /// deliveries in that time.
    runs_ended: u64,
    delivery_attempts: u64,
    actors: ActorTotalsView,
    breakers: Vec<ReplicaBreaker<'a>>,
}

/// The actors of a replica.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ActorTotalsView {
    actors: u64,
    /// The number of commands in all mailboxes.
    queued: u64,
    failed: u64,
    stuck: u64,
    /// Number of panics since the start of the process; `restarts` is the number of restarts.
    panics: u64,
    restarts: u64,
}

/// The breaker and the limit of one operation of the authority on a replica.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReplicaBreaker<'a> {
    operation: &'a str,
    /// `closed`, `half_open` or `open`.
    state: &'static str,
    /// True if an operator has stopped the calls.
    is_tripped: bool,
    /// The reason why the last call failed or, while the breaker is open, why most calls failed; null if the last call
    /// was answered and the breaker is closed.
    cause: Option<&'a str>,
    /// Number of calls within the last 30 s. `failures` is the number of these calls that failed.
    calls: u32,
    failures: u32,
    limit: u32,
    in_flight: u32,
    waiting: u64,
}

impl ReplicaState {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::NotReady => "not-ready",
            Self::Stopping => "stopping",
            Self::Missing => "missing",
        }
    }
}

impl<'a> ReplicaView<'a> {
    pub(crate) fn new(list: &ReplicaList, replica: &'a Replica) -> Self {
        let figures = &replica.figures;
        Self {
            id: &replica.identity.id,
            name: &replica.identity.name,
            state: list.state(replica).name(),
            not_ready: figures.not_ready.as_deref(),
            degraded: figures.degraded.as_deref(),
            version: &figures.version,
            started_at: precise_time(figures.started_at),
            seen_at: precise_time(replica.seen_at),
            leases: replica.leases,
            resident_bytes: figures.resident_bytes,
            clock_ahead_ms: figures.clock_ahead_ms,
            requests: figures.requests,
            p99_us: figures.p99_us,
            runs_ended: figures.runs_ended,
            delivery_attempts: figures.delivery_attempts,
            actors: figures.actors.into(),
            breakers: figures.breakers.iter().map(Into::into).collect(),
        }
    }
}

impl From<ActorTotals> for ActorTotalsView {
    fn from(totals: ActorTotals) -> Self {
        Self {
            actors: totals.actors,
            queued: totals.queued,
            failed: totals.failed,
            stuck: totals.stuck,
            panics: totals.panics,
            restarts: totals.restarts,
        }
    }
}

impl<'a> From<&'a BreakerFigures> for ReplicaBreaker<'a> {
    fn from(figures: &'a BreakerFigures) -> Self {
        Self {
            operation: &figures.operation,
            state: figures.state.name(),
            is_tripped: figures.is_tripped,
            cause: figures.cause.as_deref(),
            calls: figures.calls,
            failures: figures.failures,
            limit: figures.limit,
            in_flight: figures.in_flight,
            waiting: figures.waiting,
        }
    }
}
