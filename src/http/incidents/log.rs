//! The memory of this process about incidents: the time at which each was first seen, and the counters of the last
//! minutes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use authority_client::Operation;
use jiff::Timestamp;

use crate::domain::incident::{FoundIncident, INCIDENTS, Incident, Situation, SlowOperations};
use crate::domain::replica::RefusedKey;
use crate::http::incidents::samples::{CounterSamples, LastHeldLanes, QueueLengths};

/// The incidents of one moment.
#[derive(Debug, Default)]
pub(crate) struct IncidentReport {
    pub(crate) incidents: Vec<Incident>,
    /// The time of the last counts from the database; `None` if it has never answered.
    pub(crate) counted_at: Option<Timestamp>,
}

/// The time at which an incident began, or was first seen.
#[derive(Debug, Clone, Copy)]
struct IncidentStart {
    at: Timestamp,
    /// True if the real beginning is unknown, and `at` is the time at which this process or a comparison with the
    /// ledger first saw the incident.
    is_first_sight: bool,
}

/// The kind of an incident, with the cause if each cause is an incident of its own.
type IncidentKey = (&'static str, String);

/// The incidents and samples that this process remembers. Pages and metrics read the last report, without a query.
#[derive(Debug, Default)]
pub struct IncidentLog {
    last_report: Mutex<Arc<IncidentReport>>,
    /// The beginnings of the present incidents. An incident that is over is removed.
    beginnings: Mutex<HashMap<IncidentKey, IncidentStart>>,
    /// Set while the authority refuses the key of this process.
    refused_key: Mutex<Option<RefusedKey>>,
    /// The time at which the database last had a fault; `None` if it had none since the process started.
    database_fault_at: Mutex<Option<Timestamp>>,
    /// The time at which an operation last paused because the authority asked for it; `None` if none ever did.
    paused_at: Mutex<Option<Timestamp>>,
    pub(crate) samples: Mutex<CounterSamples>,
    pub(crate) slow_operations: Mutex<SlowOperations>,
    pub(crate) queue_lengths: Mutex<QueueLengths>,
    pub(crate) last_held_lanes: Mutex<LastHeldLanes>,
    /// The highest concurrency limit that each operation has had.
    pub(crate) highest_limits: Mutex<HashMap<&'static str, u32>>,
}

impl IncidentLog {
    pub(crate) fn last_report(&self) -> Arc<IncidentReport> {
        Arc::clone(&lock(&self.last_report))
    }

    /// Finds the incidents of a situation, and keeps them as the last report.
    pub(crate) fn record_situation(
        &self,
        situation: &Situation,
        counted_at: Option<Timestamp>,
    ) -> Arc<IncidentReport> {
        let mut beginnings = lock(&self.beginnings);
        let mut present = HashMap::new();
        let mut incidents = Vec::new();
        for kind in INCIDENTS {
            for mut finding in (kind.find)(situation) {
                // The facts may have been counted a while ago, so the end that they name may have passed meanwhile.
                finding.until = finding.until.filter(|at| *at > situation.now);
                let key = if kind.may_change_cause() {
                    (kind.name, String::new())
                } else {
                    (kind.name, finding.cause.clone())
                };
                let known = beginnings.get(&key).copied();
                let beginning = find_start(&finding, known, situation.now);
                present.insert(key, beginning);
                incidents.push(Incident {
                    kind,
                    since: beginning.at,
                    is_since_first_sight: beginning.is_first_sight,
                    finding,
                });
            }
        }
        *beginnings = present;
        drop(beginnings);
        let report = Arc::new(IncidentReport {
            incidents,
            counted_at,
        });
        *lock(&self.last_report) = Arc::clone(&report);
        report
    }

    /// Records the operations at whose last calls the authority refused the key of this process. `operations` is empty
    /// if the authority accepts the key.
    pub(crate) fn record_refused_key(
        &self,
        operations: Vec<String>,
        now: Timestamp,
    ) -> Option<RefusedKey> {
        let mut refused = lock(&self.refused_key);
        let since = refused.as_ref().map_or(now, |before| before.since);
        *refused = (!operations.is_empty()).then_some(RefusedKey { since, operations });
        refused.clone()
    }

    /// Returns the refusal of the key of this process, as it was last recorded.
    pub(crate) fn refused_key(&self) -> Option<RefusedKey> {
        lock(&self.refused_key).clone()
    }

    pub(crate) fn record_database_fault(&self, now: Timestamp) {
        *lock(&self.database_fault_at) = Some(now);
    }

    /// Returns the time at which the database last had a fault.
    pub(crate) fn database_fault_at(&self) -> Option<Timestamp> {
        *lock(&self.database_fault_at)
    }

    /// Records that an operation pauses because the authority asked for it.
    pub(crate) fn record_pause(&self, now: Timestamp) {
        *lock(&self.paused_at) = Some(now);
    }

    pub(crate) fn paused_at(&self) -> Option<Timestamp> {
        *lock(&self.paused_at)
    }

    /// Records the current concurrency limit of an operation. Returns the highest limit so far.
    pub(crate) fn record_limit(&self, operation: Operation, limit: u32) -> u32 {
        let mut highest = lock(&self.highest_limits);
        let known = highest.entry(operation.name()).or_default();
        *known = limit.max(*known);
        *known
    }
}

/// Returns the beginning of an incident: the earlier of the recorded beginning (`known`) and the beginning that the
/// data shows now. The data may no longer show the real beginning, because part of the incident may be over.
fn find_start(
    finding: &FoundIncident,
    known: Option<IncidentStart>,
    now: Timestamp,
) -> IncidentStart {
    let from_data = finding.since.map(|at| IncidentStart {
        at: at.min(now),
        is_first_sight: finding.is_since_first_sight,
    });
    let known = known.map(|known| IncidentStart {
        at: known.at.min(now),
        ..known
    });
    let beginnings = [known, from_data].into_iter().flatten();
    let earliest = beginnings.min_by_key(|start| (start.at, start.is_first_sight));
    earliest.unwrap_or(IncidentStart {
        at: now,
        is_first_sight: true,
    })
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::domain::incident::{CountAndOldest, DatabaseFault, WorkFacts};

    /// A moment of an incident: its second, the change of the facts, and the kind of the incident with its beginning in
    /// seconds. The last value is true if the incident was only first seen then.
    type Moment = (i64, fn(&mut Situation), Option<(&'static str, i64, bool)>);

    fn at(second: i64) -> Timestamp {
        Situation::calm().now + SignedDuration::from_secs(second)
    }

    fn work(situation: &mut Situation) -> &mut WorkFacts {
        situation.work.get_or_insert_default()
    }

    fn since(second: i64) -> CountAndOldest {
        CountAndOldest {
            count: 1,
            since: Some(at(second)),
        }
    }

    fn differing_since(second: i64) -> Vec<(String, CountAndOldest)> {
        vec![("state_differs".to_owned(), since(second))]
    }

    const COURSES: [&[Moment]; 7] = [
        // A new cause starts no new incident.
        &[
            (
                0,
                |situation| situation.database.fault = Some(DatabaseFault::Failing),
                Some(("database-silent", 0, true)),
            ),
            (
                5,
                |situation| situation.database.fault = Some(DatabaseFault::Silent),
                Some(("database-silent", 0, true)),
            ),
            (9, |situation| situation.database.fault = None, None),
            (
                12,
                |situation| situation.database.fault = Some(DatabaseFault::Silent),
                Some(("database-silent", 12, true)),
            ),
        ],
        // The stored beginning counts as soon as it is known, and stays.
        &[
            (
                3,
                |situation| situation.authority.is_silent = true,
                Some(("authority-out", 3, true)),
            ),
            (
                5,
                |situation| work(situation).outage_since = Some(at(1)),
                Some(("authority-out", 1, false)),
            ),
            (
                7,
                |situation| situation.authority.held_operations = vec!["sign"],
                Some(("authority-out", 1, false)),
            ),
            (
                9,
                |situation| work(situation).outage_since = None,
                Some(("authority-out", 1, false)),
            ),
        ],
        // A later comparison of a day that still differs starts no new incident. An incident that is over is removed.
        &[
            (
                0,
                |situation| work(situation).differences = differing_since(-100),
                Some(("ledger-differs", -100, true)),
            ),
            (
                5,
                |situation| work(situation).differences = differing_since(3),
                Some(("ledger-differs", -100, true)),
            ),
            (7, |situation| work(situation).differences.clear(), None),
            (
                9,
                |situation| work(situation).differences = differing_since(8),
                Some(("ledger-differs", 8, true)),
            ),
        ],
        // The oldest of several runs has ended, and the others remain.
        &[
            (
                0,
                |situation| work(situation).paused = since(-60),
                Some(("runs-paused", -60, false)),
            ),
            (
                5,
                |situation| work(situation).paused = since(-10),
                Some(("runs-paused", -60, false)),
            ),
        ],
        // Each operation is an incident of its own.
        &[
            (
                0,
                |situation| situation.authority.tripped_operations = vec![("sign", Some(at(-60)))],
                Some(("breaker-tripped", -60, false)),
            ),
            (
                5,
                |situation| situation.authority.tripped_operations = vec![("pull", None)],
                Some(("breaker-tripped", 5, true)),
            ),
        ],
        // A time in the future means that a clock was set back.
        &[(
            0,
            |situation| situation.authority.tripped_operations = vec![("sign", Some(at(60)))],
            Some(("breaker-tripped", 0, false)),
        )],
        // A first sight in the future means that a clock was set back.
        &[
            (
                0,
                |situation| situation.database.fault = Some(DatabaseFault::Silent),
                Some(("database-silent", 0, true)),
            ),
            (-3_600, |_| (), Some(("database-silent", -3_600, true))),
            (-60, |_| (), Some(("database-silent", -3_600, true))),
        ],
    ];

    #[test]
    fn an_incident_begins_once_and_says_if_it_was_only_seen_then() {
        for course in COURSES {
            let log = IncidentLog::default();
            let mut situation = Situation::calm();
            for (second, change, expected) in course {
                situation.now = at(*second);
                change(&mut situation);
                let report = log.record_situation(&situation, None);
                let shown = report.incidents.iter().map(|incident| {
                    let since = incident.since.duration_since(at(0)).as_secs();
                    (incident.kind.name, since, incident.is_since_first_sight)
                });
                let expected: Vec<_> = expected.iter().copied().collect();
                assert_eq!(shown.collect::<Vec<_>>(), expected, "at {second} s");
            }
        }
    }

    #[test]
    fn an_end_that_has_passed_since_the_work_was_counted_is_not_shown() {
        for (second, is_shown) in [(59, true), (60, false), (3_600, false)] {
            let mut situation = Situation::calm();
            let facts = work(&mut situation);
            facts.due_soon = 1;
            facts.next_deadline = Some(at(60));
            situation.now = at(second);
            let report = IncidentLog::default().record_situation(&situation, None);
            let ends = report
                .incidents
                .iter()
                .map(|incident| incident.finding.until);
            let expected = is_shown.then(|| at(60));
            assert_eq!(ends.collect::<Vec<_>>(), [expected], "at {second} s");
        }
    }

    #[test]
    fn a_key_is_refused_since_the_first_refusal_in_a_row() {
        let log = IncidentLog::default();
        for (second, operations, since) in [
            (0, &[""; 0][..], None),
            (1, &["pull"], Some(1)),
            (2, &["pull", "sign"], Some(1)),
            (3, &[], None),
            (4, &["sign"], Some(4)),
        ] {
            let operations: Vec<_> = operations.iter().map(|name| (*name).to_owned()).collect();
            let expected = since.map(|since| RefusedKey {
                since: at(since),
                operations: operations.clone(),
            });
            let recorded = log.record_refused_key(operations, at(second));
            assert_eq!(recorded, expected);
            assert_eq!(log.refused_key(), expected);
        }
    }
}
