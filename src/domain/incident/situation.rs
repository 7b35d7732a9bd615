//! What the conditions of incidents look at: the state of the service at one moment, as plain values.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::upstream::UpstreamCause;
use crate::domain::quarantine::WorkKind;
use crate::domain::replica::ReplicaList;
use crate::domain::taxpayer_pause::TaxpayerPause;

#[derive(Debug, Clone)]
pub struct Situation {
    pub now: Timestamp,
    /// What the database last said about the work of all taxpayers; `None` if it never answered.
    pub work: Option<WorkFacts>,
    pub database: DatabaseFacts,
    pub authority: AuthorityFacts,
    pub actors: ActorFacts,
    pub traffic: TrafficFacts,
    pub process: ProcessFacts,
    /// The taxpayers that operators have paused, those first that have been paused longest.
    pub paused_taxpayers: Vec<TaxpayerPause>,
    /// The replicas as this process last saw them.
    pub replicas: ReplicaList,
    /// `None` if checkpoints are made on demand only.
    pub checkpoints: Option<Repetition>,
    /// `None` if the ledger is compared on demand only, or nothing was there to compare.
    pub reconciliation: Option<Repetition>,
}

/// Work that a timer repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repetition {
    pub every: SignedDuration,
    /// When it last succeeded, or when the first repetition could begin.
    pub last: Timestamp,
}

/// A number of things, and the time from which the oldest of them counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Group {
    pub count: u64,
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, Default)]
pub struct WorkFacts {
    pub paused: Group,
    /// Runs that have missed their deadlines, since the earliest of these deadlines.
    pub overdue: Group,
    pub due_soon: u64,
    pub next_deadline: Option<Timestamp>,
    /// Lanes of runs and endpoints that are due and that nobody holds, by kind. Since when: since the first is due, or since
    /// a replica last held any of the kind if that is later.
    pub untaken: Vec<(&'static str, Group)>,
    pub quarantined: Vec<(WorkKind, Group)>,
    /// Taxpayers whose documents the authority refused within the last hour, those with most refusals first.
    pub refused: Vec<RefusedTaxpayer>,
    /// The reasons of these refusals, those of most taxpayers first.
    pub refusal_reasons: Vec<RefusalReason>,
    /// When the oldest run of the last day was created.
    pub oldest_recent_run_at: Option<Timestamp>,
    /// When a day was last compared with the authority's ledger.
    pub reconciled_at: Option<Timestamp>,
    pub endpoints: Vec<ParkedEndpoints>,
    pub endpoints_active: u64,
    pub endpoints_disabled: u64,
    /// Deliveries that became dead letters within the last day.
    pub dead_letters: Group,
    /// Differences from the authority's ledger, by kind.
    pub differences: Vec<(String, u64)>,
    pub oldest_list_fetched_at: Option<Timestamp>,
    /// When the open outage of the authority began.
    pub outage_since: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTaxpayer {
    pub taxpayer: TaxpayerId,
    pub refusals: u64,
    pub last: Timestamp,
    /// The sentence of the authority in the last refusal.
    pub reason: String,
}

/// Refusals with the same words. What differs between documents, such as numbers, is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalReason {
    pub reason: String,
    pub taxpayers: u64,
    pub documents: u64,
    pub since: Timestamp,
    pub last: Timestamp,
}

/// Endpoints that are parked for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParkedEndpoints {
    /// The name of the last failure, such as `timed_out`.
    pub failure: String,
    pub endpoints: u64,
    pub since: Option<Timestamp>,
    /// The host of most of them, and how many it has.
    pub host: Option<(String, u64)>,
}

words! {
    /// Why the database takes no write.
    DatabaseFault {
        /// It cannot be reached, or does not answer in time.
        Silent = "silent",
        DiskFull = "disk-full",
        ReadOnly = "read-only",
        /// It answers with another error.
        Failing = "failing",
    }
}

#[derive(Debug, Clone, Default)]
pub struct DatabaseFacts {
    pub fault: Option<DatabaseFault>,
    /// Queries of the last minute that waited for a connection for more than a second.
    pub slow_read_waits: u64,
}

/// The calls to one operation within the last seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallFacts {
    pub operation: &'static str,
    pub answered: u64,
    /// The mean time of the answered calls.
    pub mean: Duration,
}

#[derive(Debug, Clone, Default)]
pub struct AuthorityFacts {
    /// True if the authority did not answer the last health probes, and no call.
    pub is_silent: bool,
    /// Why the last call of an operation failed. An operation whose last call was answered is absent.
    pub last_causes: Vec<(&'static str, UpstreamCause)>,
    /// Calls of the last seconds that the authority asked to make less often.
    pub throttled_calls: u64,
    pub calls: Vec<CallFacts>,
    /// Operations whose breaker is open for everybody.
    pub held_operations: Vec<&'static str>,
    /// Operations that an operator has tripped.
    pub tripped_operations: Vec<&'static str>,
    /// True if any breaker is open, also one for a single integrator.
    pub is_held_for_some: bool,
    pub next_probe_at: Option<Timestamp>,
    /// Operations of which as many calls as the lowered limit allows are in flight, while others wait: the operation,
    /// its limit, and how many wait.
    pub limited_operations: Vec<(&'static str, u32, usize)>,
    /// Attempts at deliveries within the last 30 s whose receiver could be reached, and those whose receiver could not.
    /// If nobody can be reached, the network is ours.
    pub receivers_reached: u64,
    pub receivers_unreachable: u64,
}

#[derive(Debug, Clone, Default)]
pub struct ActorFacts {
    /// The runs that were due and that nobody had taken, at each full minute before now, the oldest first.
    pub queue_lengths: Vec<u64>,
    /// Why the process is not ready, if an actor has given up.
    pub failure: Option<String>,
    pub stuck: u64,
    /// Panics within the last quarter of an hour.
    pub panics: u64,
}

/// The number of requests that failed in the last minutes, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrafficFacts {
    /// Answers with status 500 within the last five minutes: always a defect.
    pub broken: u64,
    /// Commands that were refused within the last minute, because the process is busy.
    pub refused_commands: u64,
    /// Failed sign-ins and unknown keys within the last five minutes.
    pub failed_authentications: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessFacts {
    pub resident_bytes: Option<u64>,
    pub memory_bytes_max: Option<u64>,
    pub open_files: Option<u64>,
    pub open_files_max: Option<u64>,
    /// True if the process was started to send nothing.
    pub is_paused: bool,
}

#[cfg(test)]
impl Situation {
    /// A situation in which nothing is the matter.
    pub(super) fn calm() -> Self {
        Self {
            now: Timestamp::from_second(1_800_000_000).expect("a valid time"),
            work: Some(WorkFacts::default()),
            database: DatabaseFacts::default(),
            authority: AuthorityFacts::default(),
            actors: ActorFacts::default(),
            traffic: TrafficFacts::default(),
            process: ProcessFacts::default(),
            paused_taxpayers: Vec::new(),
            replicas: ReplicaList::default(),
            checkpoints: None,
            reconciliation: None,
        }
    }
}
