//! Incidents of work that a timer repeats: checkpoints of the event log, and the comparison with the authority's ledger.

use jiff::SignedDuration;

use crate::domain::incident::Finding;
use crate::domain::incident::situation::{Repetition, Situation};

/// Work that has not succeeded for so many of its intervals is late.
const INTERVALS_MAX: i32 = 3;
/// Shorter than this nothing is late, however short its interval is: counts are some seconds old.
const LATE_AFTER_MIN: SignedDuration = SignedDuration::from_secs(15);

pub(super) fn checkpoints_old(situation: &Situation) -> Vec<Finding> {
    late_work(
        situation,
        situation.checkpoints,
        "checkpoint of the event log",
    )
}

pub(super) fn reconciliation_old(situation: &Situation) -> Vec<Finding> {
    late_work(
        situation,
        situation.reconciliation,
        "comparison with the authority's ledger",
    )
}

fn late_work(situation: &Situation, work: Option<Repetition>, what: &str) -> Vec<Finding> {
    let Some(Repetition { every, last }) = work else {
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
    vec![Finding::new(1, summary).since(last.checked_add(limit).ok())]
}

/// Writes a span of time in the largest fitting unit.
fn span_words(span: SignedDuration) -> String {
    match span.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}
