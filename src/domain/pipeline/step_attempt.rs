//! An attempt at a step of a run: its beginning, its result, the state of the run after it, and its entry in the log of
//! steps. Changes by callers, operators and crashes are in `run`.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::domain::kernel::upstream::CallFailure;
use crate::domain::pipeline::{ResolvedBy, Run, RunPhase, Step, StepProgress, WaitReason};

/// The result of one attempt at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepResult {
    Done {
        resolved_by: ResolvedBy,
        qr_code: Option<String>,
    },
    /// The authority already had the requested state, so nothing was sent.
    Unchanged(ResolvedBy),
    Refused {
        error: String,
    },
    /// The attempt failed. The step is retried at `until`.
    Wait {
        reason: WaitReason,
        error: String,
        until: Timestamp,
    },
    /// No call was made, because calls of this operation are blocked now. The step is tried at `until`.
    Deferred {
        reason: WaitReason,
        error: String,
        until: Timestamp,
    },
    /// The time in which failures are retried has passed. The run stays paused until an operator acts on it.
    Pause {
        error: String,
    },
}

impl StepResult {
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Done { .. } | Self::Unchanged(_) => None,
            Self::Refused { error }
            | Self::Wait { error, .. }
            | Self::Deferred { error, .. }
            | Self::Pause { error } => Some(error),
        }
    }

    /// Returns the word for this result in the log of steps.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done { .. } => "done",
            Self::Unchanged(_) => "unchanged",
            Self::Refused { .. } => "refused",
            Self::Wait { .. } => "retry",
            Self::Deferred { .. } => "held",
            Self::Pause { .. } => "paused",
        }
    }
}

/// An entry of the log of steps: one attempt at a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepRecord {
    pub step: Step,
    pub attempt: u32,
    /// `None` while a call with an effect is in flight. If the process crashed during the call, `interrupted` from the
    /// time at which the run goes on.
    pub outcome: Option<String>,
    pub started_at: Timestamp,
    pub duration_ms: Option<i64>,
    pub error: Option<String>,
    /// `None` if the call was answered or not made, and in entries from before the cause was recorded.
    pub failure: Option<CallFailure>,
}

impl Run {
    /// Begins an attempt at a step. For a step with an effect, this records the intent to call it, and the caller must
    /// store the run before the call. A momentary step (`Step::is_momentary`) keeps the intent of the step that follows
    /// it.
    #[must_use]
    pub fn begin_attempt(self, step: Step, now: Timestamp) -> Self {
        let before = self.progress;
        let progress = StepProgress {
            intent: if step.has_effect() {
                Some(step)
            } else {
                before.intent
            },
            attempt: before.attempt + 1,
            failing_since: before
                .failing_since
                .map(|since| self.without_queue_time(since, now)),
            ..before
        };
        Self {
            progress,
            updated_at: now,
            ..self.into_running()
        }
    }

    /// Sets the phase `Running`, because the next attempt begins. The run keeps the time at which the attempt was due.
    #[must_use]
    pub fn into_running(self) -> Self {
        Self {
            phase: RunPhase::Running {
                due_at: self.next_attempt_at(),
            },
            ..self
        }
    }

    /// Returns `since`, the time at which failures began, moved forward by the time from `next_attempt_at` to `now`.
    /// During this time the run waited in a queue or its calls were blocked, so it does not count as failing.
    fn without_queue_time(&self, since: Timestamp, now: Timestamp) -> Timestamp {
        let late = self
            .next_attempt_at()
            .map(|at| now.duration_since(at))
            .filter(SignedDuration::is_positive);
        late.and_then(|late| since.checked_add(late).ok())
            .unwrap_or(since)
            .min(now)
    }

    /// Returns the run after an attempt at `step` had the result `verdict`.
    #[must_use]
    pub fn after_step(mut self, step: Step, verdict: &StepResult, now: Timestamp) -> Self {
        self.updated_at = now;
        self.last_error = verdict.error().map(str::to_owned);
        match verdict {
            StepResult::Done {
                resolved_by,
                qr_code,
            } => self.finish_step(step, *resolved_by, qr_code.clone()),
            StepResult::Unchanged(resolved_by) => self.finish_step(step, *resolved_by, None),
            StepResult::Refused { .. } => self.end(RunPhase::Refused),
            StepResult::Wait { reason, until, .. } => {
                self.progress.failing_since.get_or_insert(now);
                self.enter_waiting(*reason, *until);
            }
            StepResult::Deferred { reason, until, .. } => {
                let attempt = &mut self.progress.attempt;
                *attempt = attempt.saturating_sub(1);
                self.enter_waiting(*reason, *until);
            }
            StepResult::Pause { .. } => self.phase = RunPhase::Paused,
        }
        self
    }

    fn finish_step(&mut self, step: Step, resolved_by: ResolvedBy, qr_code: Option<String>) {
        if step.has_effect() {
            self.finish_momentary_steps();
        }
        self.done.push(step);
        let intent = self.progress.intent.filter(|intent| *intent != step);
        // A momentary step is repeated before each attempt at the next step, so it does not count as an attempt.
        let attempt = self.progress.attempt.saturating_sub(1);
        let before = if step.is_momentary() {
            StepProgress {
                attempt,
                ..self.progress
            }
        } else {
            StepProgress::default()
        };
        self.progress = StepProgress { intent, ..before };
        self.qr_code = self.qr_code.take().or(qr_code);
        self.resolved_by = resolved_by.combine_with_earlier(self.resolved_by, step);
        let goes_on = self.next_step().is_some();
        self.phase = if goes_on {
            RunPhase::Running { due_at: None }
        } else {
            RunPhase::Succeeded
        };
    }

    /// Marks the momentary steps as done. They only prepare the call of a step with an effect. If the run is made due
    /// again during that call, they are no longer in `done`, but nothing is left to prepare after the call.
    fn finish_momentary_steps(&mut self) {
        let steps = self.operation().steps().iter().copied();
        let missing: Vec<_> = steps
            .filter(|step| step.is_momentary() && !self.done.contains(step))
            .collect();
        self.done.extend(missing);
    }

    /// Makes the run wait. Its intent stays, because an unknown outcome must be queried before the next call.
    fn enter_waiting(&mut self, reason: WaitReason, until: Timestamp) {
        self.phase = RunPhase::Waiting { reason, until };
        self.done.retain(|step| !step.is_momentary());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::ids::{RunId, TaxpayerId};
    use crate::domain::pipeline::{Operation, RunRequest, RunState};

    fn run(operation: Operation) -> Run {
        let request = RunRequest::sample("INV001-94AD90FB-20261121", operation);
        Run::new(RunId::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH)
    }

    fn done_result() -> StepResult {
        StepResult::Done {
            resolved_by: ResolvedBy::Answer,
            qr_code: None,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn lost_result(until: Timestamp) -> StepResult {
        StepResult::Wait {
            reason: WaitReason::AuthorityUnavailable,
            error: "cut".to_owned(),
            until,
        }
    }

    #[test]
    fn an_unchanged_state_ends_its_run() {
        let now = Timestamp::UNIX_EPOCH;
        let verdict = StepResult::Unchanged(ResolvedBy::Confirm);
        let run = run(Operation::Payment)
            .begin_attempt(Step::Payment, now)
            .after_step(Step::Payment, &verdict, now);
        assert_eq!(
            (run.state(), run.resolved_by),
            (RunState::Succeeded, Some(ResolvedBy::Confirm))
        );
        assert_eq!(
            (run.progress.intent, verdict.as_str(), verdict.error()),
            (None, "unchanged", None)
        );
    }

    #[test]
    fn a_deferred_step_counts_no_attempt_and_no_time() {
        let failed = run(Operation::Submit)
            .begin_attempt(Step::IrnCheck, at(0))
            .after_step(Step::IrnCheck, &lost_result(at(1)), at(0));
        assert_eq!(
            (failed.progress.attempt, failed.progress.failing_since),
            (1, Some(at(0)))
        );
        let tried = failed.begin_attempt(Step::IrnCheck, at(1));
        let not_called = StepResult::Deferred {
            reason: WaitReason::AuthorityThrottles,
            error: "held back".to_owned(),
            until: at(1),
        };
        let held = tried.after_step(Step::IrnCheck, &not_called, at(1));
        assert_eq!(
            (held.progress.attempt, held.state(), held.wait_reason()),
            (1, RunState::Waiting, Some(WaitReason::AuthorityThrottles))
        );
        let later = held.begin_attempt(Step::IrnCheck, at(90_000)).after_step(
            Step::IrnCheck,
            &lost_result(at(90_002)),
            at(90_000),
        );
        assert_eq!(
            (later.progress.attempt, later.progress.failing_since),
            (2, Some(at(89_999))),
            "a day in the queue does not count as failing"
        );
    }

    #[test]
    fn a_transmission_ends_with_the_answer_to_its_call_whatever_an_operator_does_meanwhile() {
        type Change = fn(Run) -> Run;
        let changes: [(&str, Change); 4] = [
            ("nothing", |run| run),
            ("paused", |run| run.pause(at(1))),
            ("made due", |run| run.make_due(at(1))),
            ("paused and resumed", |run| run.pause(at(1)).reopen(at(2))),
        ];
        for (name, change) in changes {
            let mut checked = run(Operation::Transmit);
            for step in [Step::Health, Step::AccessPoints] {
                checked =
                    checked
                        .begin_attempt(step, at(0))
                        .after_step(step, &done_result(), at(0));
            }
            let called = change(checked.begin_attempt(Step::Send, at(0)));
            let answered = called.after_step(Step::Send, &done_result(), at(3));
            assert_eq!(
                (answered.state(), answered.next_step()),
                (RunState::Succeeded, None),
                "{name}"
            );
        }
    }

    #[test]
    fn a_transmission_that_fails_at_its_last_step_only_is_given_up_all_the_same() {
        let mut run = run(Operation::Transmit);
        for (second, attempt) in [(0, 1), (10, 2), (20, 3)] {
            for step in [Step::Health, Step::AccessPoints] {
                run = run.begin_attempt(step, at(second)).after_step(
                    step,
                    &done_result(),
                    at(second),
                );
            }
            run = run.begin_attempt(Step::Send, at(second));
            assert_eq!(run.progress.attempt, attempt);
            run = run.after_step(Step::Send, &lost_result(at(second + 10)), at(second));
            assert_eq!(run.progress.failing_since, Some(at(0)));
        }
    }
}
