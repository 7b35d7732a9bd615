//! A reconciliation compares the invoices of one day of a taxpayer with the authority's list and records the findings.
//! A request is stored as a row and processed later. If a process crashes meanwhile, another one repeats the
//! reconciliation, so no request is lost. No repair is made twice.
//!
//! | State | Means |
//! |---|---|
//! | queued | the reconciliation was requested and has not started |
//! | running | the reconciliation is in progress, or its process crashed |
//! | interrupted | the authority or the database failed; the reconciliation is retried |
//! | done | all invoices of the day were compared |
//! | failed | the reconciliation is not retried any more; `error` has the reason |

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::Offset;
use jiff::{Timestamp, ToSpan};

use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::reconciliation::finding_kind::FindingKind;

words! {
    ReconciliationState {
        Queued = "queued",
        Running = "running",
        Interrupted = "interrupted",
        Done = "done",
        Failed = "failed",
    }
}

impl ReconciliationState {
    /// True if the reconciliation still has to be processed.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running | Self::Interrupted)
    }
}

words! {
    /// The source of a reconciliation request.
    AskedBy { Timer = "timer", Operator = "operator", CommandLine = "command-line" }
}

words! {
    /// The treatment of a finding: it was repaired, or it is listed for an operator.
    FindingAction { Repaired = "mended", Listed = "listed" }
}

/// The maximum number of attempts at one reconciliation.
pub const ATTEMPTS_MAX: u32 = 5;

/// The reconciliation of one day of one taxpayer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciliation {
    pub id: uuid::Uuid,
    pub taxpayer_id: TaxpayerId,
    /// The day in the time zone of the authority.
    pub day: Date,
    pub by: AskedBy,
    pub state: ReconciliationState,
    pub attempts: u32,
    pub counts: ReconciliationCounts,
    /// The reason why the reconciliation was interrupted or failed.
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

/// The results of a reconciliation. `repaired`, `listed` and `decided` count findings, the other fields count invoices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReconciliationCounts {
    pub compared: u32,
    pub agreed: u32,
    pub in_progress: u32,
    pub repaired: u32,
    /// Findings that an operator has to look at.
    pub listed: u32,
    /// Findings that an operator has decided.
    pub decided: u32,
}

/// One difference between our records and the authority's, and its treatment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    pub irn: String,
    pub local: Option<String>,
    pub remote: Option<String>,
    pub action: FindingAction,
    pub detail: String,
}

impl Finding {
    /// True if both findings describe the same difference: the same kind for the same invoice, with the same states on
    /// both sides.
    pub fn is_same_difference(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.irn == other.irn
            && self.local == other.local
            && self.remote == other.remote
    }
}

/// The findings of the comparison of a day, and the invoices for which it had a definite result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DayFindings {
    pub findings: Vec<Finding>,
    /// The keys of the IRNs whose records agree, or whose differences are all among `findings`. An invoice with work in
    /// progress is not among them.
    pub compared_keys: BTreeSet<String>,
}

/// An operator's decision that a listed difference needs no further action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorDecision {
    pub operator_id: i64,
    pub reason: String,
    pub decided_at: Timestamp,
}

/// A finding of a completed reconciliation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFinding {
    /// The number of the finding within its reconciliation, from 1.
    pub number: u32,
    pub finding: Finding,
    pub decision: Option<OperatorDecision>,
}

/// Numbers the findings of a comparison. `before` holds the findings of the earlier comparisons that this one replaces.
/// If one of them describes the same difference, the operator's decision on it is kept.
pub fn assign_finding_numbers(
    findings: Vec<Finding>,
    before: &[RecordedFinding],
) -> Vec<RecordedFinding> {
    (1..)
        .zip(findings)
        .map(|(number, finding)| RecordedFinding {
            number,
            decision: earlier_decision(&finding, before),
            finding,
        })
        .collect()
}

fn earlier_decision(finding: &Finding, before: &[RecordedFinding]) -> Option<OperatorDecision> {
    if finding.action != FindingAction::Listed {
        return None;
    }
    let mut same = before
        .iter()
        .filter(|earlier| earlier.finding.is_same_difference(finding));
    same.find_map(|earlier| earlier.decision.clone())
}

impl Reconciliation {
    pub fn new(
        id: uuid::Uuid,
        taxpayer_id: TaxpayerId,
        day: Date,
        by: AskedBy,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            taxpayer_id,
            day,
            by,
            state: ReconciliationState::Queued,
            attempts: 0,
            counts: ReconciliationCounts::default(),
            error: None,
            created_at: now,
            started_at: None,
            ended_at: None,
        }
    }

    #[must_use]
    pub fn begin(self, now: Timestamp) -> Self {
        let state = ReconciliationState::Running;
        let attempts = self.attempts + 1;
        Self {
            state,
            attempts,
            error: None,
            started_at: Some(now),
            ended_at: None,
            ..self
        }
    }

    /// Counts `decided` of the listed findings as decided.
    #[must_use]
    pub fn count_findings_as_decided(self, decided: u32) -> Self {
        let counts = ReconciliationCounts {
            listed: self.counts.listed.saturating_sub(decided),
            decided,
            ..self.counts
        };
        Self { counts, ..self }
    }

    #[must_use]
    pub fn finish(self, counts: ReconciliationCounts, now: Timestamp) -> Self {
        Self {
            state: ReconciliationState::Done,
            counts,
            ended_at: Some(now),
            ..self
        }
    }

    /// Records that an error interrupted the reconciliation. If the error is final, or if this was attempt
    /// `ATTEMPTS_MAX`, the reconciliation has failed.
    #[must_use]
    pub fn record_failure(self, error: String, is_final: bool, now: Timestamp) -> Self {
        let state = if is_final || self.attempts >= ATTEMPTS_MAX {
            ReconciliationState::Failed
        } else {
            ReconciliationState::Interrupted
        };
        Self {
            state,
            error: Some(error),
            ended_at: Some(now),
            ..self
        }
    }
}

/// Returns the time of a day in a time zone: from its start to the start of the next day, which does not belong to it.
/// `None` if one of the two cannot be represented.
pub fn day_span(day: Date, zone: Offset) -> Option<Range<Timestamp>> {
    Some(day_start(day, zone)?..day_start(day.tomorrow().ok()?, zone)?)
}

fn day_start(day: Date, zone: Offset) -> Option<Timestamp> {
    let midnight = day.to_datetime(jiff::civil::Time::midnight());
    zone.to_timestamp(midnight).ok()
}

pub fn day_at(at: Timestamp, zone: Offset) -> Date {
    zone.to_datetime(at).date()
}

/// Returns the days that the timer compares: today and the days before it, `days` in total, newest first.
pub fn recent_days(today: Date, days: u32) -> Vec<Date> {
    (0..days.max(1))
        .filter_map(|back| today.checked_sub(i64::from(back).days()).ok())
        .collect()
}

/// True if a day must be compared now: in intervals of `every` until the day ends at `end`, and once more after that.
/// `last` is the start of the last completed comparison.
pub fn is_due(end: Timestamp, last: Option<Timestamp>, every: Duration, now: Timestamp) -> bool {
    match last {
        None => true,
        Some(last) if now >= end => last < end,
        // A last comparison in the future was recorded before the clock was set back, so the day is compared again.
        Some(last) => last > now || last.saturating_add(every).is_ok_and(|next| next <= now),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::offset;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn day(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn a_day_is_one_in_the_time_zone_of_the_authority() {
        assert_eq!(
            day_span(day("2026-01-15"), offset(1)),
            Some(at("2026-01-14T23:00:00Z")..at("2026-01-15T23:00:00Z"))
        );
        assert_eq!(
            day_at(at("2026-01-14T23:00:00Z"), offset(1)),
            day("2026-01-15")
        );
        assert_eq!(day_span(Date::MAX, offset(1)), None);
    }

    #[test]
    fn the_timer_looks_at_today_and_the_days_before_it() {
        let days = |count| {
            recent_days(day("2026-03-01"), count)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(days(2), ["2026-03-01", "2026-02-28"]);
        assert_eq!(days(0), ["2026-03-01"]);
    }

    #[test]
    fn a_day_that_ended_is_compared_once_and_today_again_and_again() {
        let end = at("2026-01-15T23:00:00Z");
        let hour = Duration::from_hours(1);
        let due = |last: Option<&str>, now: &str| is_due(end, last.map(at), hour, at(now));
        assert!(due(None, "2026-01-15T10:00:00Z"));
        assert!(!due(Some("2026-01-15T10:00:00Z"), "2026-01-15T10:59:59Z"));
        assert!(due(Some("2026-01-15T10:00:00Z"), "2026-01-15T11:00:00Z"));
        assert!(
            due(Some("2026-01-15T22:59:59Z"), "2026-01-15T23:00:00Z"),
            "once after its end"
        );
        assert!(!due(Some("2026-01-15T23:00:00Z"), "2026-01-20T00:00:00Z"));
    }

    #[test]
    fn an_interrupted_reconciliation_is_retried_a_few_times_and_then_given_up() {
        let now = Timestamp::UNIX_EPOCH;
        let asked = || {
            Reconciliation::new(
                uuid::Uuid::nil(),
                TaxpayerId(7),
                day("2026-01-15"),
                AskedBy::Timer,
                now,
            )
        };
        let mut one = asked();
        let mut states = Vec::new();
        while one.state.is_open() {
            one = one.begin(now).record_failure("down".to_owned(), false, now);
            states.push(one.state);
        }
        assert_eq!(
            (states.len(), one.state),
            (ATTEMPTS_MAX as usize, ReconciliationState::Failed)
        );
        assert_eq!(states[0], ReconciliationState::Interrupted);
        let refused = asked()
            .begin(now)
            .record_failure("unknown".to_owned(), true, now);
        assert_eq!(
            (refused.state, refused.attempts),
            (ReconciliationState::Failed, 1)
        );
    }
}
