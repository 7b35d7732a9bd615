//! A run takes one document through the steps of an operation. Its record lets another process continue it.

use jiff::Timestamp;
use serde_json::Value;
use timing::trace::TraceContext;

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::audit::NamedActor;
use crate::domain::kernel::crash::CrashHistory;
use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::pipeline::{
    Operation, ResolvedBy, RunPayload, RunRequest, RunState, Step, WaitReason,
};

/// One run of the pipeline for one IRN.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub id: RunId,
    pub taxpayer_id: TaxpayerId,
    pub irn: Irn,
    pub payload: RunPayload,
    pub phase: RunPhase,
    /// SHA-256 of the document, in hexadecimal (`RunPayload::digest`).
    pub digest: String,
    pub done: Vec<Step>,
    pub progress: StepProgress,
    /// The legal deadline for the invoice to reach the authority.
    pub deadline_at: Timestamp,
    pub last_error: Option<String>,
    pub resolved_by: Option<ResolvedBy>,
    pub qr_code: Option<String>,
    /// The trace of the request that opened the run, or that last sent its document again.
    pub trace: Option<TraceContext>,
    /// The person or program that opened the run, or that last requested it again; `None` for runs from before this was
    /// recorded.
    pub asked_by: Option<NamedActor>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The phase of a run, with the data that only this phase has. `RunState` is the phase without the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPhase {
    Running {
        /// The time when the run became due for its next attempt, or for the attempt in progress. `None` between two
        /// steps.
        due_at: Option<Timestamp>,
    },
    Waiting {
        reason: WaitReason,
        until: Timestamp,
    },
    Paused,
    Succeeded,
    Refused,
    Cancelled,
}

/// The attempts and failures so far of the step that a run has reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepProgress {
    /// The step with an effect whose call was started and whose outcome is not known. Before the next call the
    /// authority must be asked about this outcome.
    pub intent: Option<Step>,
    /// The number of attempts, including queries about the outcome of the step.
    pub attempt: u32,
    pub crash_history: CrashHistory,
    /// The time since which the step has failed. It is moved forward by the times that the run has spent in a queue
    /// since then.
    pub failing_since: Option<Timestamp>,
}

impl StepProgress {
    fn with_crash_history(self, crash_history: CrashHistory) -> Self {
        Self {
            crash_history,
            ..self
        }
    }

    /// Restarts the time in which failures are retried, and sets this crash history.
    fn restart(self, crash_history: CrashHistory) -> Self {
        Self {
            failing_since: None,
            crash_history,
            ..self
        }
    }
}

impl Run {
    pub fn new(id: RunId, taxpayer_id: TaxpayerId, request: RunRequest, now: Timestamp) -> Self {
        Self {
            id,
            taxpayer_id,
            digest: request.digest(),
            irn: request.irn,
            payload: request.payload,
            phase: RunPhase::Running { due_at: Some(now) },
            done: Vec::new(),
            progress: StepProgress::default(),
            deadline_at: now,
            last_error: None,
            resolved_by: None,
            qr_code: None,
            trace: None,
            asked_by: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Finds the run of an operation among the runs of one invoice.
    pub fn find_in(runs: &[Self], operation: Operation) -> Option<&Self> {
        runs.iter().find(|run| run.operation() == operation)
    }

    #[must_use]
    pub fn with_deadline(self, deadline_at: Timestamp) -> Self {
        Self {
            deadline_at,
            ..self
        }
    }

    /// Sets the trace of the request that makes the run due. If there is no such request, the run keeps its trace.
    #[must_use]
    pub fn with_trace(self, trace: Option<TraceContext>) -> Self {
        Self {
            trace: trace.or(self.trace),
            ..self
        }
    }

    #[must_use]
    pub fn with_asker(self, asked_by: Option<NamedActor>) -> Self {
        Self { asked_by, ..self }
    }

    pub fn operation(&self) -> Operation {
        self.payload.operation()
    }

    pub fn state(&self) -> RunState {
        match self.phase {
            RunPhase::Running { .. } => RunState::Running,
            RunPhase::Waiting { .. } => RunState::Waiting,
            RunPhase::Paused => RunState::Paused,
            RunPhase::Succeeded => RunState::Succeeded,
            RunPhase::Refused => RunState::Refused,
            RunPhase::Cancelled => RunState::Cancelled,
        }
    }

    /// Returns the time when the run is due for its next attempt, or was due for the attempt in progress. `None`
    /// between two steps, and if no attempt is planned.
    pub fn next_attempt_at(&self) -> Option<Timestamp> {
        match self.phase {
            RunPhase::Running { due_at } => due_at,
            RunPhase::Waiting { until, .. } => Some(until),
            RunPhase::Paused | RunPhase::Succeeded | RunPhase::Refused | RunPhase::Cancelled => {
                None
            }
        }
    }

    pub fn wait_reason(&self) -> Option<WaitReason> {
        match self.phase {
            RunPhase::Waiting { reason, .. } => Some(reason),
            _ => None,
        }
    }

    /// Returns the document that is sent to the authority.
    pub fn document(&self) -> Value {
        self.payload.document(&self.irn)
    }

    /// Returns the first step that is not done; `None` if all steps are done.
    pub fn next_step(&self) -> Option<Step> {
        self.operation().next_step(&self.done)
    }

    /// Returns the step that can be called now; `None` if the run is over, paused or waiting.
    pub fn callable_step(&self) -> Option<Step> {
        self.next_step()
            .filter(|_| self.state() == RunState::Running)
    }

    /// True if the document can still be replaced: no step with an effect was done or has an unknown outcome. A payment
    /// update that is over can always be replaced, because a payment status may change again.
    pub fn is_replaceable(&self) -> bool {
        let over = self.operation().is_repeatable() && !self.state().is_open();
        let untouched = over || !self.done.iter().any(|step| step.has_effect());
        untouched && self.progress.intent.is_none()
    }

    /// Starts the run over with another document.
    #[must_use]
    pub fn start_over(self, request: RunRequest, now: Timestamp) -> Self {
        let fresh = Self::new(self.id, self.taxpayer_id, request, now);
        Self {
            created_at: self.created_at,
            ..fresh
        }
    }

    /// True if a caller that waits for the run gets its response now: the run is over or paused, or it waits and is not
    /// a submission.
    pub fn may_respond_to_caller(&self) -> bool {
        match self.operation() {
            Operation::Submit => !self.state().is_open(),
            Operation::Transmit | Operation::Report | Operation::Payment => {
                self.state() != RunState::Running
            }
        }
    }

    /// Makes the run due now. Momentary steps (`Step::is_momentary`) are repeated.
    #[must_use]
    pub fn make_due(mut self, now: Timestamp) -> Self {
        self.done.retain(|step| !step.is_momentary());
        Self {
            phase: RunPhase::Running { due_at: Some(now) },
            updated_at: now,
            ..self
        }
    }

    /// Makes the run due now, restarts the time in which failures are retried, and releases a quarantine.
    #[must_use]
    pub fn reopen(self, now: Timestamp) -> Self {
        let history = self.progress.crash_history.release();
        let progress = self.progress.restart(history);
        Self {
            progress,
            ..self.make_due(now)
        }
    }

    /// Lifts the quarantine of a run without an operator, and makes the run continue.
    #[must_use]
    pub fn lift_quarantine(self, now: Timestamp) -> Self {
        let progress = self
            .progress
            .restart(self.progress.crash_history.lift_quarantine());
        Self {
            progress,
            ..self.make_due(now)
        }
    }

    /// Keeps a run in quarantine although its quarantine could be lifted. From now on, only an operator can release it.
    #[must_use]
    pub fn require_operator_release(self) -> Self {
        let crash_history = CrashHistory {
            is_lifted: true,
            ..self.progress.crash_history
        };
        Self {
            progress: self.progress.with_crash_history(crash_history),
            ..self
        }
    }

    /// Counts a crash of the process that worked on this run.
    #[must_use]
    pub fn after_crash(self) -> Self {
        Self {
            progress: self
                .progress
                .with_crash_history(self.progress.crash_history.after_crash()),
            ..self
        }
    }

    /// Counts a panic of the task that worked on this run.
    #[must_use]
    pub fn after_panic(self) -> Self {
        Self {
            progress: self
                .progress
                .with_crash_history(self.progress.crash_history.after_panic()),
            ..self
        }
    }

    /// True if the current step crashed or panicked so often that the run is in quarantine, so that a request of the
    /// taxpayer does not retry it.
    pub fn is_quarantined(&self) -> bool {
        self.progress.crash_history.is_quarantined()
    }

    /// True if the current step was in flight at two crashes. Such runs begin one at a time.
    pub fn must_run_alone(&self) -> bool {
        self.progress.crash_history.must_run_alone()
    }

    /// True if our records say that a step with an effect succeeded.
    pub fn has_taken_effect(&self) -> bool {
        self.done.iter().any(|step| step.has_effect())
    }

    /// Ends the run as succeeded, because the authority reports the invoice as transmitted.
    #[must_use]
    pub fn end_as_transmitted(mut self, now: Timestamp) -> Self {
        while let Some(step) = self.next_step() {
            self.done.push(step);
        }
        self.end(RunPhase::Succeeded);
        self.last_error = None;
        self.resolved_by = Some(ResolvedBy::Confirm);
        self.updated_at = now;
        self
    }

    pub(super) fn end(&mut self, phase: RunPhase) {
        self.phase = phase;
        self.progress = StepProgress::default();
    }

    /// Pauses the run before its next step, until an operator resumes the run.
    #[must_use]
    pub fn pause(self, now: Timestamp) -> Self {
        Self {
            phase: RunPhase::Paused,
            updated_at: now,
            ..self
        }
    }

    /// Ends the run as cancelled: the invoice was cancelled before the authority validated it, or an operator cancelled
    /// the run.
    #[must_use]
    pub fn cancel(mut self, now: Timestamp) -> Self {
        self.end(RunPhase::Cancelled);
        self.updated_at = now;
        self
    }
}

/// Returns the key of a run's lane: the id of the taxpayer, a slash, and the id of the run.
pub fn run_lane_key(taxpayer: TaxpayerId, run: RunId) -> String {
    format!("{taxpayer}/{run}")
}

/// Parses a key that `run_lane_key` made into taxpayer and run; `None` for another text.
pub fn parse_run_lane_key(key: &str) -> Option<(TaxpayerId, RunId)> {
    let (taxpayer, run) = key.split_once('/')?;
    Some((TaxpayerId(taxpayer.parse().ok()?), run.parse().ok()?))
}

#[cfg(test)]
impl RunPhase {
    /// A phase of this state.
    pub fn sample(state: RunState) -> Self {
        match state {
            RunState::Running => Self::Running {
                due_at: Some(Timestamp::UNIX_EPOCH),
            },
            RunState::Waiting => Self::Waiting {
                reason: WaitReason::AuthorityUnavailable,
                until: Timestamp::UNIX_EPOCH,
            },
            RunState::Paused => Self::Paused,
            RunState::Succeeded => Self::Succeeded,
            RunState::Refused => Self::Refused,
            RunState::Cancelled => Self::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::pipeline::StepResult;

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

    #[test]
    fn a_run_that_may_have_taken_effect_is_not_replaced() {
        let now = Timestamp::UNIX_EPOCH;
        for (operation, step) in [
            (Operation::Submit, Step::Sign),
            (Operation::Report, Step::Report),
            (Operation::Payment, Step::Payment),
        ] {
            assert!(run(operation).is_replaceable(), "{operation}");
            let called = run(operation).begin_attempt(step, now);
            assert!(!called.is_replaceable(), "{operation} in progress");
            let lost = StepResult::Wait {
                reason: WaitReason::AuthorityUnavailable,
                error: "cut".to_owned(),
                until: now,
            };
            assert!(
                !called.clone().after_step(step, &lost, now).is_replaceable(),
                "{operation} unknown"
            );
            let paused = called.clone().after_step(
                step,
                &StepResult::Pause {
                    error: "cut".to_owned(),
                },
                now,
            );
            assert!(!paused.is_replaceable(), "{operation} given up");
            let refused = called.clone().after_step(
                step,
                &StepResult::Refused {
                    error: "no".to_owned(),
                },
                now,
            );
            assert!(refused.is_replaceable(), "{operation} refused");
            assert_eq!(
                called
                    .after_step(step, &done_result(), now)
                    .is_replaceable(),
                operation.is_repeatable(),
                "{operation}"
            );
        }
    }

    #[test]
    fn a_check_alone_leaves_the_document_replaceable() {
        let now = Timestamp::UNIX_EPOCH;
        let checked = run(Operation::Submit)
            .begin_attempt(Step::IrnCheck, now)
            .after_step(Step::IrnCheck, &done_result(), now);
        assert!(checked.is_replaceable());
    }
}
