//! Counters of calls to the authority, per operation and outcome. A cancelled call is not counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use timing::histograms::{self, Histograms};

use crate::operation::Operation;
use crate::transport::failure::{AuthorityFailure, CauseKind};

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallOutcome {
    Succeeded,
    Refused,
    NotFound,
    Retryable,
    Throttled,
    Unknown,
    BreakerOpen,
    RateLimited,
    QueueFull,
    Paused,
}

impl CallOutcome {
    /// Every outcome, in the order of the discriminants, so that `outcome as usize` is its index.
    pub const ALL: [Self; 10] = [
        Self::Succeeded,
        Self::Refused,
        Self::NotFound,
        Self::Retryable,
        Self::Throttled,
        Self::Unknown,
        Self::BreakerOpen,
        Self::RateLimited,
        Self::QueueFull,
        Self::Paused,
    ];

    /// The outcome's name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Refused => "refused",
            Self::NotFound => "not_found",
            Self::Retryable => "retryable",
            Self::Throttled => "throttled",
            Self::Unknown => "unknown",
            Self::BreakerOpen => "breaker_open",
            Self::RateLimited => "rate_limited",
            Self::QueueFull => "queue_full",
            Self::Paused => "paused",
        }
    }

    pub(crate) fn from_result<T>(result: &Result<T, AuthorityFailure>) -> Self {
        match result {
            Ok(_) => Self::Succeeded,
            Err(AuthorityFailure::Refused { .. }) => Self::Refused,
            Err(AuthorityFailure::NotFound { .. }) => Self::NotFound,
            Err(AuthorityFailure::Retryable { .. }) => Self::Retryable,
            Err(AuthorityFailure::Throttled { .. }) => Self::Throttled,
            Err(AuthorityFailure::Unknown { .. }) => Self::Unknown,
            Err(AuthorityFailure::BreakerOpen { .. } | AuthorityFailure::CallsStopped { .. }) => {
                Self::BreakerOpen
            }
            Err(AuthorityFailure::RateLimited { .. }) => Self::RateLimited,
            Err(AuthorityFailure::QueueFull { .. }) => Self::QueueFull,
            Err(AuthorityFailure::Paused) => Self::Paused,
        }
    }
}

/// The calls of one operation with one outcome, since the start of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallStats {
    pub operation: Operation,
    pub outcome: CallOutcome,
    pub calls: u64,
    /// The total duration of these calls.
    pub duration: Duration,
}

#[derive(Debug, Default)]
struct CallSum {
    calls: AtomicU64,
    micros: AtomicU64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    operation: &'static str,
    outcome: &'static str,
}

#[derive(Debug)]
pub(crate) struct CallCounters {
    sums: [[CallSum; CallOutcome::ALL.len()]; Operation::ALL.len()],
    causes: [AtomicU64; CauseKind::ALL.len()],
    /// The durations of the calls that were made. Calls that a limit or breaker prevented are not included.
    pub(crate) durations: Histograms<CallLabels>,
}

impl Default for CallCounters {
    fn default() -> Self {
        let durations = Histograms::new_with_constructor(histograms::for_call_durations);
        Self {
            sums: Default::default(),
            causes: Default::default(),
            durations,
        }
    }
}

impl CallCounters {
    /// Counts a call that was made, and adds its duration to the histogram.
    pub(crate) fn record_call(
        &self,
        operation: Operation,
        outcome: CallOutcome,
        duration: Duration,
    ) {
        self.count_outcome(operation, outcome, duration);
        let labels = CallLabels {
            operation: operation.name(),
            outcome: outcome.name(),
        };
        self.durations
            .get_or_create(&labels)
            .observe(duration.as_secs_f64());
    }

    pub(crate) fn count_cause(&self, cause: CauseKind) {
        self.causes[cause as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of failed calls, by cause.
    pub(crate) fn causes(&self) -> [(CauseKind, u64); CauseKind::ALL.len()] {
        CauseKind::ALL.map(|cause| (cause, self.causes[cause as usize].load(Ordering::Relaxed)))
    }

    pub(crate) fn count_outcome(
        &self,
        operation: Operation,
        outcome: CallOutcome,
        duration: Duration,
    ) {
        let cell = &self.sums[operation as usize][outcome as usize];
        cell.calls.fetch_add(1, Ordering::Relaxed);
        cell.micros.fetch_add(
            u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    pub(crate) fn snapshot(&self) -> Vec<CallStats> {
        let stats = Operation::ALL.into_iter().flat_map(|operation| {
            CallOutcome::ALL.into_iter().map(move |outcome| {
                let cell = &self.sums[operation as usize][outcome as usize];
                let duration = Duration::from_micros(cell.micros.load(Ordering::Relaxed));
                CallStats {
                    operation,
                    outcome,
                    calls: cell.calls.load(Ordering::Relaxed),
                    duration,
                }
            })
        });
        stats.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_operation_and_outcome() {
        let call_counters = CallCounters::default();
        call_counters.count_outcome(
            Operation::Sign,
            CallOutcome::Unknown,
            Duration::from_millis(2),
        );
        call_counters.count_outcome(
            Operation::Sign,
            CallOutcome::Unknown,
            Duration::from_millis(3),
        );
        let all = call_counters.snapshot();
        assert_eq!(all.len(), Operation::ALL.len() * CallOutcome::ALL.len());
        let counted: Vec<_> = all.into_iter().filter(|stats| stats.calls > 0).collect();
        let expected = CallStats {
            operation: Operation::Sign,
            outcome: CallOutcome::Unknown,
            calls: 2,
            duration: Duration::from_millis(5),
        };
        assert_eq!(counted, [expected]);
    }
}
