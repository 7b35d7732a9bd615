//! What a failed step leads to: a refusal, another try at a moment, a wait for calls to be made at all, or a pause
//! for an operator. Schedules are
//! data (`pipeline.*` in config.toml); chance and time are arguments.

use std::time::Duration;

use jiff::Timestamp;

use crate::actors::pipeline::steps::{Outcome, Trouble};
use crate::authority::{AuthorityFailure, RetryPolicy};
use crate::domain::pipeline::{Run, Step, StepResult, WaitReason};

/// The verdict on an outcome of the run's present step.
pub(super) fn verdict(
    outcome: Outcome,
    run: &Run,
    policy: &RetryPolicy,
    now: Timestamp,
    jitter: u32,
) -> StepResult {
    let trouble = match outcome {
        Outcome::Done { by, qr_code } => return StepResult::Done { resolved_by: by, qr_code },
        Outcome::Unchanged(by) => return StepResult::Unchanged(by),
        Outcome::Failed(Trouble::Refused(error)) => return StepResult::Refused { error },
        Outcome::Failed(Trouble::NeedsOperator(error)) => return StepResult::Pause { error },
        Outcome::Failed(trouble) => trouble,
    };
    if let Trouble::Call(failure) = &trouble
        && !failure.counts_as_attempt()
    {
        let wait = failure.retry_after().unwrap_or(policy.initial);
        return StepResult::Hold { error: failure.to_string(), until: later(now, wait) };
    }
    let (reason, error, retry_after) = explain(trouble, run);
    let failing_for = run.failing_since.and_then(|since| Duration::try_from(now.duration_since(since)).ok());
    match policy.delay(run.attempt, failing_for.unwrap_or_default(), retry_after, jitter) {
        Some(delay) => StepResult::Wait { reason, error, until: later(now, delay) },
        None => StepResult::Pause { error },
    }
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn explain(trouble: Trouble, run: &Run) -> (WaitReason, String, Option<Duration>) {
    match trouble {
        Trouble::Refused(error) | Trouble::NeedsOperator(error) => {
            (WaitReason::AuthorityUnavailable, error, None)
        }
        Trouble::Health => {
            (WaitReason::HealthCheckDown, "the authority's health check is down".to_owned(), None)
        }
        Trouble::AccessPoint(error) => (WaitReason::AccessPointOffline, error, None),
        Trouble::Call(failure @ AuthorityFailure::NotFound { .. })
            if run.next_step() == Some(Step::Confirm) =>
        {
            (WaitReason::AuthorityUnavailable, format!("signed, but not found yet: {failure}"), None)
        }
        Trouble::Call(failure) => {
            (WaitReason::AuthorityUnavailable, failure.to_string(), failure.retry_after())
        }
    }
}
