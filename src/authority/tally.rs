//! Counters of upstream calls, per operation and outcome. They only grow; the metrics page reads them.
//! A call whose caller went away is not counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::failure::Failure;
use super::operation::Operation;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Succeeded,
    Refused,
    NotFound,
    Retryable,
    Throttled,
    Unknown,
    BreakerOpen,
    Paced,
    Crowded,
}

impl Outcome {
    /// Every outcome, in the order of its discriminant.
    pub const ALL: [Self; 9] = [
        Self::Succeeded,
        Self::Refused,
        Self::NotFound,
        Self::Retryable,
        Self::Throttled,
        Self::Unknown,
        Self::BreakerOpen,
        Self::Paced,
        Self::Crowded,
    ];

    /// The name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Refused => "refused",
            Self::NotFound => "not_found",
            Self::Retryable => "retryable",
            Self::Throttled => "throttled",
            Self::Unknown => "unknown",
            Self::BreakerOpen => "breaker_open",
            Self::Paced => "rate_limited",
            Self::Crowded => "queue_full",
        }
    }

    pub(super) fn of<T>(result: &Result<T, Failure>) -> Self {
        match result {
            Ok(_) => Self::Succeeded,
            Err(Failure::Refused { .. }) => Self::Refused,
            Err(Failure::NotFound { .. }) => Self::NotFound,
            Err(Failure::Retryable { .. }) => Self::Retryable,
            Err(Failure::Throttled { .. }) => Self::Throttled,
            Err(Failure::Unknown { .. }) => Self::Unknown,
            Err(Failure::BreakerOpen { .. }) => Self::BreakerOpen,
            Err(Failure::Paced { .. }) => Self::Paced,
            Err(Failure::Crowded { .. }) => Self::Crowded,
        }
    }
}

/// What one operation came to with one outcome, since the start of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    pub operation: Operation,
    pub outcome: Outcome,
    pub calls: u64,
    /// The time all of them took together.
    pub duration: Duration,
}

#[derive(Debug, Default)]
struct Cell {
    calls: AtomicU64,
    micros: AtomicU64,
}

/// One cell per operation and outcome.
#[derive(Debug, Default)]
pub(super) struct Tallies([[Cell; Outcome::ALL.len()]; Operation::ALL.len()]);

impl Tallies {
    pub(super) fn count(&self, operation: Operation, outcome: Outcome, duration: Duration) {
        let cell = &self.0[operation as usize][outcome as usize];
        cell.calls.fetch_add(1, Ordering::Relaxed);
        cell.micros.fetch_add(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn all(&self) -> Vec<Tally> {
        let of = |operation: Operation| {
            Outcome::ALL.into_iter().map(move |outcome| {
                let cell = &self.0[operation as usize][outcome as usize];
                let duration = Duration::from_micros(cell.micros.load(Ordering::Relaxed));
                Tally { operation, outcome, calls: cell.calls.load(Ordering::Relaxed), duration }
            })
        };
        Operation::ALL.into_iter().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_operation_and_outcome() {
        let tallies = Tallies::default();
        tallies.count(Operation::Sign, Outcome::Unknown, Duration::from_millis(2));
        tallies.count(Operation::Sign, Outcome::Unknown, Duration::from_millis(3));
        let all = tallies.all();
        assert_eq!(all.len(), Operation::ALL.len() * Outcome::ALL.len());
        let counted: Vec<_> = all.into_iter().filter(|tally| tally.calls > 0).collect();
        let expected = Tally {
            operation: Operation::Sign,
            outcome: Outcome::Unknown,
            calls: 2,
            duration: Duration::from_millis(5),
        };
        assert_eq!(counted, [expected]);
    }
}
