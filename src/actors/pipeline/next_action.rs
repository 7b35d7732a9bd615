//! Decides what follows the outcome of a step: the next step, a retry, a wait, a refusal, or a pause for an operator.
//! The retry schedule is configuration (`pipeline.*`).

use std::time::Duration;

use authority_client::{AuthorityFailure, RetryPolicy};
use jiff::Timestamp;

use crate::actors::pipeline::step_executor::{ExecutedStep, ExecutionResult, StepError};
use crate::domain::pipeline::{Run, Step, StepResult, WaitReason};

pub(super) fn next_action(
    outcome: ExecutionResult,
    run: &Run,
    policy: &RetryPolicy,
    now: Timestamp,
    jitter: u32,
) -> StepResult {
    let error = match outcome {
        Ok(ExecutedStep::Done { by, qr_code }) => {
            return StepResult::Done {
                resolved_by: by,
                qr_code,
            };
        }
        Ok(ExecutedStep::Unchanged(by)) => return StepResult::Unchanged(by),
        Err(StepError::Refused(error)) => return StepResult::Refused { error },
        Err(StepError::NeedsOperator(error)) => return StepResult::Pause { error },
        Err(error) => error,
    };
    if let StepError::Call(failure) = &error
        && !failure.counts_as_attempt()
    {
        let wait = failure.retry_after().unwrap_or(policy.initial);
        return StepResult::Deferred {
            reason: call_wait_reason(failure),
            error: failure.to_string(),
            until: time_after(now, wait),
        };
    }
    let ExplainedFailure {
        reason,
        error,
        retry_after,
    } = explain_failure(error, run);
    let failing_for = run
        .progress
        .failing_since
        .and_then(|since| Duration::try_from(now.duration_since(since)).ok());
    match policy.delay(
        run.progress.attempt,
        failing_for.unwrap_or_default(),
        retry_after,
        jitter,
    ) {
        Some(delay) => StepResult::Wait {
            reason,
            error,
            until: time_after(now, delay),
        },
        None => StepResult::Pause { error },
    }
}

fn time_after(now: Timestamp, wait: Duration) -> Timestamp {
    now.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

fn call_wait_reason(failure: &AuthorityFailure) -> WaitReason {
    match failure {
        AuthorityFailure::Throttled { .. } | AuthorityFailure::RateLimited { .. } => {
            WaitReason::AuthorityThrottles
        }
        _ => WaitReason::AuthorityUnavailable,
    }
}

/// The failure of a step that is tried again, as the run shows it while it waits.
struct ExplainedFailure {
    reason: WaitReason,
    error: String,
    /// The time that the authority asked us to wait; `None` if it named none.
    retry_after: Option<Duration>,
}

fn explain_failure(error: StepError, run: &Run) -> ExplainedFailure {
    let (reason, error, retry_after) = match error {
        StepError::Refused(error) | StepError::NeedsOperator(error) => {
            (WaitReason::AuthorityUnavailable, error, None)
        }
        StepError::Health => (
            WaitReason::HealthCheckDown,
            "the authority's health check is down".to_owned(),
            None,
        ),
        StepError::AccessPoint(error) => (WaitReason::AccessPointOffline, error, None),
        StepError::Call(failure @ AuthorityFailure::NotFound { .. })
            if run.next_step() == Some(Step::Confirm) =>
        {
            (
                WaitReason::AuthorityUnavailable,
                format!("signed, but not found yet: {failure}"),
                None,
            )
        }
        StepError::Call(failure) => (
            call_wait_reason(&failure),
            failure.to_string(),
            failure.retry_after(),
        ),
    };
    ExplainedFailure {
        reason,
        error,
        retry_after,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::{RunId, TaxpayerId};
    use crate::domain::pipeline::{Operation, RunRequest};
    use authority_client::Cause;

    #[test]
    fn a_run_waits_for_the_reason_for_which_its_call_failed_or_was_not_made() {
        let wait = Duration::from_secs(30);
        let policy = RetryPolicy {
            initial: wait,
            max: wait,
            give_up_after: Duration::from_hours(1),
        };
        let request = RunRequest::sample("INV001-94AD90FB-20261121", Operation::Submit);
        let run = Run::new(RunId::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH);
        let throttled = AuthorityFailure::Throttled {
            retry_after: Some(wait),
        };
        let down = AuthorityFailure::Retryable {
            reason: Cause::Down { status: 503 },
        };
        for (failure, expected) in [
            (throttled, WaitReason::AuthorityThrottles),
            (
                AuthorityFailure::RateLimited { retry_after: wait },
                WaitReason::AuthorityThrottles,
            ),
            (
                AuthorityFailure::BreakerOpen { retry_after: wait },
                WaitReason::AuthorityUnavailable,
            ),
            (down, WaitReason::AuthorityUnavailable),
        ] {
            let name = format!("{failure:?}");
            let outcome = Err(StepError::Call(failure));
            let result = next_action(outcome, &run, &policy, Timestamp::UNIX_EPOCH, 1);
            let (StepResult::Wait { reason, .. } | StepResult::Deferred { reason, .. }) = result
            else {
                panic!("{name}: {result:?}");
            };
            assert_eq!(reason, expected, "{name}");
        }
    }
}
