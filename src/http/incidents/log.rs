//! The memory of this process about incidents: the time at which each was first seen, and the counters of the last
//! minutes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use authority_client::Operation;
use jiff::Timestamp;

use crate::domain::incident::{INCIDENTS, Incident, Situation};
use crate::http::incidents::samples::{CounterSamples, LastHeldLanes, QueueLengths};

/// The incidents of one moment.
#[derive(Debug, Default)]
pub(crate) struct IncidentReport {
    pub(crate) incidents: Vec<Incident>,
    /// The time of the last counts from the database; `None` if it has never answered.
    pub(crate) counted_at: Option<Timestamp>,
}

/// The incidents and samples that this process remembers. Pages and metrics read the last report, without a query.
#[derive(Debug, Default)]
pub struct IncidentLog {
    last: Mutex<Arc<IncidentReport>>,
    /// The time at which each incident was first seen, by its kind and cause. An incident that is over is removed.
    first_seen: Mutex<HashMap<(&'static str, String), Timestamp>>,
    pub(crate) samples: Mutex<CounterSamples>,
    pub(crate) queue_lengths: Mutex<QueueLengths>,
    pub(crate) last_held: Mutex<LastHeldLanes>,
    /// The highest concurrency limit that each operation has had.
    pub(crate) highest_limits: Mutex<HashMap<&'static str, u32>>,
}

impl IncidentLog {
    pub(crate) fn last_report(&self) -> Arc<IncidentReport> {
        Arc::clone(&lock(&self.last))
    }

    /// Finds the incidents of a situation, and keeps them as the last report.
    pub(crate) fn record_situation(
        &self,
        situation: &Situation,
        counted_at: Option<Timestamp>,
    ) -> Arc<IncidentReport> {
        let mut first_seen = lock(&self.first_seen);
        let mut still_seen = HashMap::new();
        let mut incidents = Vec::new();
        for kind in INCIDENTS {
            for finding in (kind.find)(situation) {
                let case = (kind.name, finding.cause.clone());
                let seen = first_seen.get(&case).copied().unwrap_or(situation.now);
                still_seen.insert(case, seen);
                incidents.push(Incident {
                    kind,
                    since: finding.since.unwrap_or(seen).min(situation.now),
                    finding,
                });
            }
        }
        *first_seen = still_seen;
        drop(first_seen);
        let report = Arc::new(IncidentReport {
            incidents,
            counted_at,
        });
        *lock(&self.last) = Arc::clone(&report);
        report
    }

    /// Records the current concurrency limit of an operation. Returns the highest limit so far.
    pub(crate) fn record_limit(&self, operation: Operation, limit: u32) -> u32 {
        let mut highest = lock(&self.highest_limits);
        let known = highest.entry(operation.name()).or_default();
        *known = limit.max(*known);
        *known
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
