//! The facts that the conditions of incidents check: the state of the service at one moment, as plain values.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::upstream::UpstreamCause;
use crate::domain::quarantine::WorkKind;
use crate::domain::replica::{RefusedKey, ReplicaList};
use crate::domain::taxpayer_pause::TaxpayerPause;

#[derive(Debug, Clone)]
pub struct Situation {
    pub now: Timestamp,
    /// The work of all taxpayers, as the last query of the database found it; `None` if no query has succeeded yet.
    pub work: Option<WorkFacts>,
    pub database: DatabaseFacts,
    pub authority: AuthorityFacts,
    pub actors: ActorFacts,
    pub traffic: TrafficFacts,
    pub process: ProcessUsage,
    /// True if the process was started in the mode in which it sends nothing.
    pub is_process_paused: bool,
    /// The taxpayers that operators have paused, the longest paused first.
    pub paused_taxpayers: Vec<TaxpayerPause>,
    /// The replicas, as this process last read them.
    pub replicas: ReplicaList,
    /// The periodic checkpoints; `None` if checkpoints are made on demand only.
    pub checkpoints: Option<PeriodicWork>,
    /// The periodic reconciliation; `None` if it runs on demand only, or if there was nothing to compare.
    pub reconciliation: Option<PeriodicWork>,
}

/// Work that a timer repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodicWork {
    pub every: SignedDuration,
    /// The time at which the work last succeeded; before the first success, the time at which it could first run.
    pub last: Timestamp,
}

/// A number of runs, deliveries or other work of one kind, and the time of the oldest. The time is `None` if there is no
/// such work, or if the time is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountAndOldest {
    pub count: u64,
    pub since: Option<Timestamp>,
}

/// The work of all taxpayers, as it is stored: runs, deadlines, deliveries, endpoints and differences.
#[derive(Debug, Clone, Default)]
pub struct WorkFacts {
    /// The time at which the work was counted. It is long ago if the database does not answer, or answers too slowly.
    pub counted_at: Option<Timestamp>,
    pub paused: CountAndOldest,
    /// The names of those taxpayers that have been paused by operators for longest.
    pub paused_names: Vec<(TaxpayerId, String)>,
    /// The submissions that have missed their deadlines, without those that were late from the beginning and whose runs
    /// were created less than a minute ago and move. `since` is the earliest of these deadlines.
    pub overdue: CountAndOldest,
    /// The submissions whose deadlines are near.
    pub due_soon: u64,
    /// The earliest of the deadlines of these submissions; `None` if there are none.
    pub next_deadline: Option<Timestamp>,
    /// The due lanes of runs and of endpoints that no replica holds, by kind, without the runs of paused taxpayers.
    /// `since` is the earliest due time, or the time at which a replica last held a lane of this kind if that is later.
    pub untaken: Vec<(&'static str, CountAndOldest)>,
    /// The work in quarantine, by kind. `since` of tasks is the time of the next attempt at one of them.
    pub quarantined: Vec<(WorkKind, CountAndOldest)>,
    /// The documents that the authority refused within the last hour, by taxpayer, most refusals first. Refused payment
    /// updates do not count, because nothing of the invoice depends on them.
    pub taxpayer_refusals: Vec<TaxpayerRefusals>,
    /// The reasons of these refusals, those that affect most taxpayers first.
    pub refusal_reasons: Vec<RefusalReason>,
    /// The time at which the oldest run of the last 24 hours was created.
    pub oldest_recent_run_at: Option<Timestamp>,
    /// The time at which a day was last compared with the authority's ledger.
    pub reconciled_at: Option<Timestamp>,
    pub endpoints: Vec<ParkedEndpoints>,
    pub endpoints_active: u64,
    pub endpoints_disabled: u64,
    /// The deliveries that became dead letters within the last 24 hours.
    pub dead_letters: CountAndOldest,
    /// The differences from the authority's ledger that await an operator, by kind. `since` is the time of the oldest
    /// comparison that found them. It moves on when the day is compared again, because only the latest comparison of a
    /// day counts.
    pub differences: Vec<(String, CountAndOldest)>,
    pub oldest_list_fetched_at: Option<Timestamp>,
    /// The number of the authority's lists that were never fetched.
    pub missing_lists: usize,
    /// The time at which the open outage of the authority began; `None` if there is no outage.
    pub outage_since: Option<Timestamp>,
}

/// The recent refusals of one taxpayer's documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaxpayerRefusals {
    pub taxpayer: TaxpayerId,
    pub refusals: u64,
    pub last: Timestamp,
    /// The authority's sentence in the last refusal. It is set for the first taxpayer of the list only.
    pub reason: String,
}

/// Refusals for the same reason. `reason` leaves out what differs between documents, such as numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalReason {
    pub reason: String,
    pub taxpayers: u64,
    pub documents: u64,
    pub since: Timestamp,
    pub last: Timestamp,
}

/// Endpoints that are parked for the same reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParkedEndpoints {
    /// The name of the last failure, such as `timed_out`.
    pub failure: String,
    /// The statuses of the last responses, each once, the lowest first; empty if the endpoints did not respond.
    pub statuses: Vec<u16>,
    /// The time of the next probe of one of these endpoints; `None` if none is planned: the next delivery that waits
    /// is sent at once.
    pub next_probe_at: Option<Timestamp>,
    pub endpoints: u64,
    pub since: Option<Timestamp>,
    /// The host that most of these endpoints have, and the number of its endpoints.
    pub host: Option<(String, u64)>,
}

words! {
    /// The reason why the database takes no write.
    DatabaseFault {
        /// The database cannot be reached, or does not answer in time.
        Silent = "silent",
        DiskFull = "disk-full",
        ReadOnly = "read-only",
        /// The database answers with another error.
        Failing = "failing",
    }
}

/// The health of the database, as this process sees it.
#[derive(Debug, Clone, Default)]
pub struct DatabaseFacts {
    pub fault: Option<DatabaseFault>,
    /// The time at which the database last had a fault; `None` if it had none since the process started.
    pub fault_at: Option<Timestamp>,
    /// The number of queries within the last minute that waited for a connection for more than a second. Waits during
    /// an outage of the database do not count.
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

/// The calls to the authority and their breakers, as this process sees them.
#[derive(Debug, Clone, Default)]
pub struct AuthorityFacts {
    /// True if the authority answered neither the last health probes nor any call.
    pub is_silent: bool,
    /// The cause of each operation's last failure. An operation whose last call was answered is left out, and so is a
    /// fault of ours that later calls show to be over.
    pub last_causes: Vec<(&'static str, UpstreamCause)>,
    /// The replicas whose key the authority refuses, by name: this one as it is now, the others as they last reported.
    pub refused_keys: Vec<(String, RefusedKey)>,
    /// True if the authority accepts the key of a replica that is not stopping: calls of this replica were answered
    /// within the last 30 s.
    pub has_accepted_key: bool,
    /// The number of recent calls that the authority throttled.
    pub throttled_calls: u64,
    /// The operations that the authority throttled and that pause as it asked, each with the end of its pause.
    pub pauses: Vec<(&'static str, Timestamp)>,
    /// The time at which an operation last paused because the authority asked for it; `None` if none ever did.
    pub paused_at: Option<Timestamp>,
    pub calls: Vec<CallFacts>,
    /// The operations that were slow and have not shown the opposite since, each with its calls when it was last slow.
    pub slow_operations: Vec<CallFacts>,
    /// The time at which a call of this process was last answered, however long ago.
    pub answered_at: Option<Timestamp>,
    /// The operations whose breaker is open for all accounts.
    pub held_operations: Vec<&'static str>,
    /// The operations whose breaker an operator has tripped, each with the time of the order.
    pub tripped_operations: Vec<(&'static str, Option<Timestamp>)>,
    /// True if an open breaker holds back runs, even if only those of one integrator. A breaker stays open until it is
    /// probed, but holds back nothing if nobody wants to call.
    pub has_held_runs: bool,
    pub next_probe_at: Option<Timestamp>,
    /// The operations whose calls wait because the lowered limit is reached: the operation, its limit, and the number
    /// of waiting calls.
    pub limited_operations: Vec<(&'static str, u32, usize)>,
    /// The number of delivery attempts within the last 30 s whose receiver could be reached. `receivers_unreachable`
    /// counts the others. If no receiver can be reached, the fault is in our network.
    pub receivers_reached: u64,
    pub receivers_unreachable: u64,
}

/// The actors of this process: the queue of due runs, and the actors that failed or are stuck.
#[derive(Debug, Clone, Default)]
pub struct ActorFacts {
    /// The number of due runs that no worker had taken, at each full minute before now, oldest first.
    pub queue_lengths: Vec<u64>,
    /// The reason why the process is not ready, if an actor has given up.
    pub failure: Option<String>,
    pub stuck: u64,
    /// The number of panics within the last quarter of an hour.
    pub panics: u64,
}

/// The number of requests that failed in the last minutes, by cause.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrafficFacts {
    /// The number of responses with status 500 within the last five minutes that a defect has caused. The failures that
    /// the contract answers with 500, such as a failed Report, do not count.
    pub broken: u64,
    /// The number of commands that were refused within the last minute because the process was busy.
    pub refused_commands: u64,
    /// The number of failed sign-ins and of requests with unknown keys within the last five minutes.
    pub failed_authentications: u64,
}

/// The memory and the open files of this process, and the limits of both. A value is `None` if it is not known or if
/// there is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    pub resident_bytes: Option<u64>,
    pub memory_bytes_max: Option<u64>,
    pub open_files: Option<u64>,
    pub open_files_max: Option<u64>,
}

#[cfg(test)]
impl Situation {
    /// A situation in which nothing is the matter.
    pub(crate) fn calm() -> Self {
        Self {
            now: Timestamp::from_second(1_800_000_000).expect("a valid time"),
            work: Some(WorkFacts::default()),
            database: DatabaseFacts::default(),
            authority: AuthorityFacts::default(),
            actors: ActorFacts::default(),
            traffic: TrafficFacts::default(),
            process: ProcessUsage::default(),
            is_process_paused: false,
            paused_taxpayers: Vec::new(),
            replicas: ReplicaList::default(),
            checkpoints: None,
            reconciliation: None,
        }
    }
}
