//! Readiness: the process is ready if the database accepts a write, no actor has failed after too many panics, and not
//! too many taxpayers' actors are stuck. If the authority is unreachable or a few of those actors are stuck, the
//! process is still ready, but degraded. The results of the probes are cached for a few seconds.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use authority_client::Authority;
use serde::Serialize;
use supervision::Tree;
use tokio::time::{sleep, timeout};

use crate::actors::kinds;
use crate::domain::incident::DatabaseFault;
use crate::http::cached::Cached;
use crate::store::Store;

const DATABASE_PROBE_LIFETIME: Duration = Duration::from_secs(3);
const AUTHORITY_PROBE_LIFETIME: Duration = Duration::from_secs(5);
/// Timeout of the database probe. It is longer than a write may wait in the queue of writes.
const DATABASE_PROBE_TIMEOUT: Duration = Duration::from_secs(6);
/// The interval at which `wait_for_database_fault` checks for a fault.
const FAULT_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// The number of failed probes in a row after which the authority counts as silent. A single failure may be just a late
/// answer.
const SILENT_AFTER_PROBES: u32 = 2;
/// Timeout of the authority probe.
const AUTHORITY_PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// The process is not ready if at least this many taxpayers' actors, and at least half of the active ones, are stuck. A
/// few stuck actors may be due to the data of their taxpayers.
const STUCK_ACTORS_MIN: usize = 8;

/// If the running probe of the database takes longer than this, the database counts as silent.
const DATABASE_SILENT_AFTER: Duration = Duration::from_secs(4);
/// The status of a process that was asked to stop.
const STOPPING: &str = "stopping";
/// The codes with which the databases report a full disk and a database that takes no writes.
const DISK_FULL_SQLITE: &str = "13";
const DISK_FULL_POSTGRES: &str = "53100";
const READ_ONLY_SQLITE: &str = "8";
const READ_ONLY_POSTGRES: &str = "25006";

/// The cached results of the probes of the database and of the authority.
#[derive(Debug)]
pub struct Health {
    database: Cached<Option<DatabaseFault>>,
    authority: Cached<Option<HealthIssue>>,
    last_probe: Mutex<DatabaseProbe>,
    /// The number of probes of the authority that have failed in a row.
    failed_authority_probes: AtomicU32,
    /// The gravest problem of the last report; `None` if there was none.
    last_issue: Mutex<Option<HealthIssue>>,
}

/// The last probe of the database.
#[derive(Debug, Default)]
struct DatabaseProbe {
    /// The time at which the running probe began; `None` if no probe runs.
    running_since: Option<Instant>,
    fault: Option<DatabaseFault>,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            database: Cached::new(DATABASE_PROBE_LIFETIME),
            authority: Cached::new(AUTHORITY_PROBE_LIFETIME),
            last_probe: Mutex::default(),
            failed_authority_probes: AtomicU32::new(0),
            last_issue: Mutex::default(),
        }
    }
}

impl Health {
    /// Returns the current report. `incident` is the known reason why the authority cannot be used; it replaces the
    /// result of the probe. Probes the database and the authority at most once every few seconds.
    pub(crate) async fn make_report(
        &self,
        store: &Store,
        tree: &Tree,
        client: &Authority,
        incident: Option<&'static str>,
    ) -> HealthReport {
        let database = self.database.get_or_load(self.probe_database(store)).await;
        let database = database.map(|fault| HealthIssue::down(fault_reason(fault)));
        let incident = incident.map(HealthIssue::degraded);
        let probe_result = self
            .authority
            .get_or_load(self.probe_authority(client))
            .await;
        let authority = incident.or(probe_result);
        let actors = check_actors(tree);
        let issues = [database.as_ref(), actors.as_ref(), authority.as_ref()];
        *self.lock_last_issue() = gravest_issue(issues).cloned();
        HealthReport::new(database, actors, authority)
    }

    /// Returns why the process was not ready at the last report; `None` if it was ready.
    pub(crate) fn last_unready_reason(&self) -> Option<String> {
        self.last_reason(Severity::Down)
    }

    /// Returns why the process was degraded at the last report; `None` if it was not ready, or if nothing was wrong.
    pub(crate) fn last_degraded_reason(&self) -> Option<String> {
        self.last_reason(Severity::Degraded)
    }

    fn last_reason(&self, severity: Severity) -> Option<String> {
        let issue = self.lock_last_issue();
        let issue = issue.as_ref().filter(|issue| issue.severity == severity)?;
        Some(issue.reason.clone())
    }

    fn lock_last_issue(&self) -> MutexGuard<'_, Option<HealthIssue>> {
        self.last_issue
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something is wrong with the database.
    pub(crate) async fn wait_for_database_fault(&self) {
        while self.database_fault().is_none() {
            sleep(FAULT_CHECK_INTERVAL).await;
        }
    }

    /// True if at least the last `SILENT_AFTER_PROBES` probes of the authority failed. Makes no probe.
    pub(crate) fn is_authority_silent(&self) -> bool {
        self.failed_authority_probes.load(Ordering::Relaxed) >= SILENT_AFTER_PROBES
    }

    async fn probe_authority(&self, client: &Authority) -> Option<HealthIssue> {
        if client.is_paused() {
            return Some(HealthIssue::degraded(
                "started with --paused: nothing is sent",
            ));
        }
        let is_alive = timeout(AUTHORITY_PROBE_TIMEOUT, client.is_alive())
            .await
            .unwrap_or(false);
        if is_alive {
            self.failed_authority_probes.store(0, Ordering::Relaxed);
            return None;
        }
        self.failed_authority_probes.fetch_add(1, Ordering::Relaxed);
        Some(HealthIssue::degraded("the authority does not answer"))
    }

    /// Returns what is wrong with the database, according to the last probe and the running one. Makes no probe.
    pub(crate) fn database_fault(&self) -> Option<DatabaseFault> {
        let probe = self.lock_last_probe();
        let is_silent = probe
            .running_since
            .is_some_and(|since| since.elapsed() > DATABASE_SILENT_AFTER);
        probe
            .fault
            .or_else(|| is_silent.then_some(DatabaseFault::Silent))
    }

    /// Probes the database. Logs the cause of a failure and does not return it, because anybody may call
    /// `/health/ready`.
    async fn probe_database(&self, store: &Store) -> Option<DatabaseFault> {
        self.lock_last_probe().running_since = Some(Instant::now());
        let probe_result = timeout(DATABASE_PROBE_TIMEOUT, store.check_writes()).await;
        let fault = match probe_result {
            Ok(Ok(())) => None,
            Ok(Err(error)) => {
                tracing::warn!(%error, "the database does not answer or takes no write");
                Some(fault_from_code(error.code().as_deref()))
            }
            Err(_) => {
                tracing::warn!("the database did not answer within {DATABASE_PROBE_TIMEOUT:?}");
                Some(DatabaseFault::Silent)
            }
        };
        *self.lock_last_probe() = DatabaseProbe {
            running_since: None,
            fault,
        };
        fault
    }

    fn lock_last_probe(&self) -> MutexGuard<'_, DatabaseProbe> {
        self.last_probe
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A problem of the database, the actors or the authority.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HealthIssue {
    severity: Severity,
    reason: String,
}

/// The effect of a problem: a degraded process is still ready, a process that is down is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    Degraded,
    Down,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Self::Degraded => "degraded",
            Self::Down => "down",
        }
    }
}

impl HealthIssue {
    fn degraded(reason: impl Into<String>) -> Self {
        Self {
            severity: Severity::Degraded,
            reason: reason.into(),
        }
    }

    fn down(reason: impl Into<String>) -> Self {
        Self {
            severity: Severity::Down,
            reason: reason.into(),
        }
    }
}

/// The response of `/health/ready`. The report of a process that will stop has no checks.
#[derive(Debug, Serialize)]
pub(crate) struct HealthReport {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<Checks>,
}

#[derive(Debug, Serialize)]
struct Checks {
    database: Check,
    actors: Check,
    authority: Check,
}

#[derive(Debug, Serialize)]
struct Check {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<Option<HealthIssue>> for Check {
    fn from(issue: Option<HealthIssue>) -> Self {
        Self {
            status: status_name(issue.as_ref().map(|issue| issue.severity)),
            reason: issue.map(|issue| issue.reason),
        }
    }
}

/// Returns the gravest of the problems.
fn gravest_issue(issues: [Option<&HealthIssue>; 3]) -> Option<&HealthIssue> {
    issues
        .into_iter()
        .flatten()
        .max_by_key(|issue| issue.severity)
}

fn status_name(severity: Option<Severity>) -> &'static str {
    severity.map_or("ok", Severity::name)
}

impl HealthReport {
    fn new(
        database: Option<HealthIssue>,
        actors: Option<HealthIssue>,
        authority: Option<HealthIssue>,
    ) -> Self {
        let issues = [database.as_ref(), actors.as_ref(), authority.as_ref()];
        let worst = gravest_issue(issues).map(|issue| issue.severity);
        let checks = Checks {
            database: database.into(),
            actors: actors.into(),
            authority: authority.into(),
        };
        Self {
            status: status_name(worst),
            checks: Some(checks),
        }
    }

    /// Returns the report of a process that will stop.
    pub(crate) fn for_stopping_process() -> Self {
        Self {
            status: STOPPING,
            checks: None,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.status != Severity::Down.name() && self.status != STOPPING
    }
}

/// Returns the reason that `/health/ready` shows for a fault of the database.
fn fault_reason(fault: DatabaseFault) -> &'static str {
    match fault {
        DatabaseFault::Silent => "the database does not answer",
        DatabaseFault::DiskFull => "the disk of the database is full",
        DatabaseFault::ReadOnly => "the database is read-only",
        DatabaseFault::Failing => "the database does not answer or takes no write",
    }
}

/// Returns the fault that a code of the database means. An error without a code comes from a database that does not
/// answer.
fn fault_from_code(code: Option<&str>) -> DatabaseFault {
    match code {
        Some(DISK_FULL_SQLITE | DISK_FULL_POSTGRES) => DatabaseFault::DiskFull,
        Some(READ_ONLY_SQLITE | READ_ONLY_POSTGRES) => DatabaseFault::ReadOnly,
        Some(_) => DatabaseFault::Failing,
        None => DatabaseFault::Silent,
    }
}

fn check_actors(tree: &Tree) -> Option<HealthIssue> {
    if let Err(reason) = tree.readiness() {
        return Some(HealthIssue::down(reason));
    }
    let taxpayers = tree.busy_actors(kinds::TAXPAYER);
    stuck_actors_issue(taxpayers.stuck, taxpayers.all)
}

fn stuck_actors_issue(stuck: usize, at_work: usize) -> Option<HealthIssue> {
    let reason = || format!("{stuck} of {at_work} taxpayers' actors at work are stuck");
    match stuck {
        0 => None,
        many if many >= STUCK_ACTORS_MIN && many * 2 >= at_work => {
            Some(HealthIssue::down(reason()))
        }
        _ => Some(HealthIssue::degraded(reason())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken_reason() -> String {
        "broken".to_owned()
    }

    #[test]
    fn a_dead_authority_degrades_and_a_dead_database_is_down() {
        let dead = || Some(HealthIssue::down(broken_reason()));
        let ill = || Some(HealthIssue::degraded(broken_reason()));
        let status =
            |database, actors, authority| HealthReport::new(database, actors, authority).status;
        assert_eq!(status(None, None, None), "ok");
        assert_eq!(status(None, None, ill()), "degraded");
        assert_eq!(status(None, ill(), None), "degraded");
        assert_eq!(status(dead(), None, None), "down");
        assert_eq!(status(None, dead(), ill()), "down");
        assert!(HealthReport::new(None, ill(), ill()).is_ready());
        assert!(!HealthReport::for_stopping_process().is_ready());
    }

    #[test]
    fn the_gravest_problem_of_a_report_is_remembered_with_its_reason() {
        let down = || Some(HealthIssue::down("down"));
        let degraded = |reason: &str| Some(HealthIssue::degraded(reason));
        let health = Health::default();
        let cases = [
            ([None, None, None], None, None),
            ([None, degraded("ill"), None], None, Some("ill")),
            ([None, None, degraded("key")], None, Some("key")),
            (
                [down(), degraded("ill"), degraded("key")],
                Some("down"),
                None,
            ),
            ([None, down(), None], Some("down"), None),
        ];
        for (issues, not_ready, ill) in cases {
            let issues = issues.each_ref().map(Option::as_ref);
            *health.lock_last_issue() = gravest_issue(issues).cloned();
            assert_eq!(health.last_unready_reason().as_deref(), not_ready);
            assert_eq!(health.last_degraded_reason().as_deref(), ill);
        }
    }

    #[test]
    fn the_code_of_the_database_says_what_is_wrong_with_it() {
        for (code, fault) in [
            (None, DatabaseFault::Silent),
            (Some("53100"), DatabaseFault::DiskFull),
            (Some("13"), DatabaseFault::DiskFull),
            (Some("25006"), DatabaseFault::ReadOnly),
            (Some("8"), DatabaseFault::ReadOnly),
            (Some("53000"), DatabaseFault::Failing),
            (Some("53200"), DatabaseFault::Failing),
            (Some("53300"), DatabaseFault::Failing),
            (Some("58030"), DatabaseFault::Failing),
            (Some("10"), DatabaseFault::Failing),
        ] {
            assert_eq!(fault_from_code(code), fault, "{code:?}");
        }
    }

    #[test]
    fn a_stuck_actor_degrades_and_most_of_many_are_down() {
        let severity =
            |count, at_work| stuck_actors_issue(count, at_work).map(|issue| issue.severity);
        assert_eq!(severity(0, 100), None);
        assert_eq!(severity(1, 1), Some(Severity::Degraded));
        assert_eq!(severity(STUCK_ACTORS_MIN, 100), Some(Severity::Degraded));
        assert_eq!(
            severity(STUCK_ACTORS_MIN, STUCK_ACTORS_MIN),
            Some(Severity::Down)
        );
        assert_eq!(severity(50, 100), Some(Severity::Down));
    }
}
