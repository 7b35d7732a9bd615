//! Incidents of work that a timer repeats: checkpoints of the event log, and reconciliation with the authority's
//! ledger.

use jiff::SignedDuration;

use crate::domain::incident::situation::{PeriodicWork, Situation};
use crate::domain::incident::{FoundIncident, IncidentKind, Severity};

/// Repeated work is late if it has not succeeded for this many of its intervals.
const INTERVALS_MAX: i32 = 3;
/// The minimum time after which work is late, however short its interval is, because the facts are some seconds old.
const LATE_AFTER_MIN: SignedDuration = SignedDuration::from_secs(15);

pub(super) const CHECKPOINTS_OLD: IncidentKind = IncidentKind {
    name: "checkpoints-old",
    severity: Severity::Warning,
    title: "No checkpoint was made for long",
    effect: "Until the next checkpoint nobody could prove that the newest events were not rewritten.",
    ends: "By itself, when a checkpoint is made.",
    to_do: "Look why the file of checkpoints cannot be written.",
    look_at: "The log lines `periodic work failed` with work `checkpoints`; `checkpoints.file` and its disk. \
              [Checkpoints](#checkpoints) says more.",
    page: "/console/supervision",
    find: find_checkpoints_old,
};

fn find_checkpoints_old(situation: &Situation) -> Vec<FoundIncident> {
    late_work_findings(
        situation,
        situation.checkpoints,
        "checkpoint of the event log",
    )
}

pub(super) const RECONCILIATION_OLD: IncidentKind = IncidentKind {
    name: "reconciliation-old",
    severity: Severity::Warning,
    title: "The ledger was not compared for long",
    effect: "Differences from the authority's ledger stay unseen.",
    ends: "By itself, when a day is compared.",
    to_do: "Look why the authority cannot be searched.",
    look_at: "`/ops/reconciliations`: the `error` of the last ones; `/ops/breakers`: the operation `search`; \
              `reconcile.every_s`.",
    page: "/console/reconciliations",
    find: find_reconciliation_old,
};

fn find_reconciliation_old(situation: &Situation) -> Vec<FoundIncident> {
    // A paused process compares nothing, and says so by an incident of its own.
    if situation.is_process_paused {
        return Vec::new();
    }
    late_work_findings(
        situation,
        situation.reconciliation,
        "comparison with the authority's ledger",
    )
}

fn late_work_findings(
    situation: &Situation,
    work: Option<PeriodicWork>,
    what: &str,
) -> Vec<FoundIncident> {
    let Some(PeriodicWork { every, last }) = work else {
        return Vec::new();
    };
    let limit = every.saturating_mul(INTERVALS_MAX).max(LATE_AFTER_MIN);
    let age = situation.now.duration_since(last);
    if age <= limit {
        return Vec::new();
    }
    let summary = format!(
        "No {what} has succeeded for {}; one is due every {}.",
        span_words(age),
        span_words(every)
    );
    vec![FoundIncident::new(1, summary).since(last.checked_add(limit).ok())]
}

/// Writes a span of time in the largest fitting unit.
fn span_words(span: SignedDuration) -> String {
    match span.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}
