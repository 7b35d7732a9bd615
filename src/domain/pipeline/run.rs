//! A run takes one document through the steps of an operation. Its record lets another process continue it.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::crash::CrashHistory;
use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::pipeline::{Operation, ResolvedBy, RunPayload, RunState, Step, WaitReason};

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
    /// A step with an effect that may have been called, and whose outcome is unknown. The authority must be asked about
    /// the outcome before the next call.
    pub intent: Option<Step>,
    /// The number of attempts, including queries about the outcome of the step.
    pub attempt: u32,
    pub crash_history: CrashHistory,
    /// The time when the step began to fail, moved forward by the time that the run has spent in a queue since.
    pub failing_since: Option<Timestamp>,
}

#[cfg(test)]
impl RunPhase {
    /// A phase of this state.
    pub fn sample(state: RunState) -> Self {
        match state {
            RunState::Running => Self::Running { due_at: Some(Timestamp::UNIX_EPOCH) },
            RunState::Waiting => {
                Self::Waiting { reason: WaitReason::AuthorityUnavailable, until: Timestamp::UNIX_EPOCH }
            }
            RunState::Paused => Self::Paused,
            RunState::Succeeded => Self::Succeeded,
            RunState::Refused => Self::Refused,
            RunState::Cancelled => Self::Cancelled,
        }
    }
}

impl StepProgress {
    fn with_history(self, crash_history: CrashHistory) -> Self {
        Self { crash_history, ..self }
    }

    /// Restarts the time for retries, with this crash history.
    fn restart(self, crash_history: CrashHistory) -> Self {
        Self { failing_since: None, crash_history, ..self }
    }
}

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
    /// No call was made, since calls of this kind are blocked at present. The step is tried at `until`.
    Deferred {
        error: String,
        until: Timestamp,
    },
    /// The time for retries has passed. The run stays paused until an operator acts on it.
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

/// A request for a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRequest {
    pub irn: Irn,
    pub payload: RunPayload,
}

impl RunRequest {
    pub fn operation(&self) -> Operation {
        self.payload.operation()
    }

    pub fn digest(&self) -> String {
        self.payload.digest(&self.irn)
    }

    /// Replaces the IRN by another spelling of the same IRN, in the request and in its document.
    #[must_use]
    pub fn with_irn_spelling(self, irn: Irn) -> Self {
        Self { payload: self.payload.with_irn_spelling(&irn), irn }
    }
}

#[cfg(test)]
impl RunRequest {
    pub fn sample(irn: &str, operation: Operation) -> Self {
        let document = serde_json::json!({
            "irn": irn, "payment_status": "PAID", "agent_tin": "1", "beneficiary_tin": "2", "currency": "NGN",
            "item_description": "Rice", "transaction_date": "2026-11-21", "integrator_service_id": "94AD90FB",
            "vat_status": "ZERO_VAT", "base_amount": "100", "vat_rate": "7.5", "vat_calculated": "7.50",
            "total_amount": "107.50",
        });
        let payload = RunPayload::from_document(operation, document).unwrap();
        Self { irn: irn.parse().unwrap(), payload }
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
            created_at: now,
            updated_at: now,
        }
    }

    #[must_use]
    pub fn with_deadline(self, deadline_at: Timestamp) -> Self {
        Self { deadline_at, ..self }
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
            RunPhase::Paused | RunPhase::Succeeded | RunPhase::Refused | RunPhase::Cancelled => None,
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
        self.next_step().filter(|_| self.state() == RunState::Running)
    }

    /// True if the document can still be replaced: no step with an effect has succeeded or has an unknown outcome. A
    /// payment update that is over can always be replaced, because a payment status may change again.
    pub fn is_replaceable(&self) -> bool {
        let over = self.operation().is_repeatable() && !self.state().is_open();
        let untouched = over || !self.done.iter().any(|step| step.has_effect());
        untouched && self.progress.intent.is_none()
    }

    /// Starts the run over with another document.
    #[must_use]
    pub fn start_over(self, request: RunRequest, now: Timestamp) -> Self {
        let fresh = Self::new(self.id, self.taxpayer_id, request, now);
        Self { created_at: self.created_at, ..fresh }
    }

    /// True if a waiting caller gets a response now: the run is over or paused, or it waits and is not a submission.
    pub fn is_settled(&self) -> bool {
        match self.operation() {
            Operation::Submit => !self.state().is_open(),
            Operation::Transmit | Operation::Report | Operation::Payment => self.state() != RunState::Running,
        }
    }

    /// Makes the run continue now. Momentary steps (`Step::is_momentary`) are repeated.
    #[must_use]
    pub fn make_due(mut self, now: Timestamp) -> Self {
        self.done.retain(|step| !step.is_momentary());
        Self { phase: RunPhase::Running { due_at: Some(now) }, updated_at: now, ..self }
    }

    /// Makes a run continue. The time for retries starts again, and a quarantined run is released.
    #[must_use]
    pub fn reopen(self, now: Timestamp) -> Self {
        let progress = self.progress.restart(self.progress.crash_history.release());
        Self { progress, ..self.make_due(now) }
    }

    /// Lifts the quarantine of a run without an operator, and makes the run continue.
    #[must_use]
    pub fn lift_quarantine(self, now: Timestamp) -> Self {
        let progress = self.progress.restart(self.progress.crash_history.lift_quarantine());
        Self { progress, ..self.make_due(now) }
    }

    /// Leaves a run in quarantine although the quarantine could be lifted. From now on, only an operator can release
    /// the run.
    #[must_use]
    pub fn keep_quarantined(self) -> Self {
        let crash_history = CrashHistory { is_lifted: true, ..self.progress.crash_history };
        Self { progress: self.progress.with_history(crash_history), ..self }
    }

    /// Counts a crash of the process that worked on this run.
    #[must_use]
    pub fn after_crash(self) -> Self {
        Self { progress: self.progress.with_history(self.progress.crash_history.after_crash()), ..self }
    }

    /// Counts a panic of the task that worked on this run.
    #[must_use]
    pub fn after_panic(self) -> Self {
        Self { progress: self.progress.with_history(self.progress.crash_history.after_panic()), ..self }
    }

    /// True if the present step crashed or panicked so often that a request of the taxpayer does not retry it.
    pub fn is_quarantined(&self) -> bool {
        self.progress.crash_history.is_quarantined()
    }

    /// True if the present step was in flight at two crashes. Such runs begin one at a time.
    pub fn must_run_alone(&self) -> bool {
        self.progress.crash_history.must_run_alone()
    }

    /// Begins an attempt at a step. If the step has an effect, this records the intent to call the step; the run must
    /// be stored before the call. A momentary step (`Step::is_momentary`) keeps the intent of the step that it
    /// precedes.
    #[must_use]
    pub fn begin_attempt(self, step: Step, now: Timestamp) -> Self {
        let before = self.progress;
        let progress = StepProgress {
            intent: if step.has_effect() { Some(step) } else { before.intent },
            attempt: before.attempt + 1,
            failing_since: before.failing_since.map(|since| self.without_queueing(since, now)),
            ..before
        };
        Self { progress, updated_at: now, ..self.into_running() }
    }

    /// Moves the run, which may be waiting, to the phase `Running`, because its next attempt begins.
    #[must_use]
    pub fn into_running(self) -> Self {
        Self { phase: RunPhase::Running { due_at: self.next_attempt_at() }, ..self }
    }

    /// Moves `since`, the start of failing, forward by the time from `next_attempt_at` to `now`. In this time the run
    /// was in a queue or its calls were blocked.
    fn without_queueing(&self, since: Timestamp, now: Timestamp) -> Timestamp {
        let late =
            self.next_attempt_at().map(|at| now.duration_since(at)).filter(SignedDuration::is_positive);
        late.and_then(|late| since.checked_add(late).ok()).unwrap_or(since).min(now)
    }

    /// True if our records say that a step with an effect succeeded.
    pub fn has_taken_effect(&self) -> bool {
        self.done.iter().any(|step| step.has_effect())
    }

    /// Returns the run after `step` ended with the result `verdict`.
    #[must_use]
    pub fn after(mut self, step: Step, verdict: &StepResult, now: Timestamp) -> Self {
        self.updated_at = now;
        self.last_error = verdict.error().map(str::to_owned);
        match verdict {
            StepResult::Done { resolved_by, qr_code } => self.finish(step, *resolved_by, qr_code.clone()),
            StepResult::Unchanged(resolved_by) => self.finish(step, *resolved_by, None),
            StepResult::Refused { .. } => self.end(RunPhase::Refused),
            StepResult::Wait { reason, until, .. } => {
                self.progress.failing_since = self.progress.failing_since.or(Some(now));
                self.wait(*reason, *until);
            }
            StepResult::Deferred { until, .. } => {
                self.progress.attempt = self.progress.attempt.saturating_sub(1);
                self.wait(WaitReason::AuthorityUnavailable, *until);
            }
            StepResult::Pause { .. } => self.phase = RunPhase::Paused,
        }
        self
    }

    /// Ends the run with success, because the authority reports the invoice as transmitted.
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

    fn finish(&mut self, step: Step, resolved_by: ResolvedBy, qr_code: Option<String>) {
        self.done.push(step);
        let intent = self.progress.intent.filter(|intent| *intent != step);
        // A momentary step is repeated before each attempt at the next step, so it does not count as an attempt.
        let attempt = self.progress.attempt.saturating_sub(1);
        let before = if step.is_momentary() {
            StepProgress { attempt, ..self.progress }
        } else {
            StepProgress::default()
        };
        self.progress = StepProgress { intent, ..before };
        self.qr_code = self.qr_code.take().or(qr_code);
        self.resolved_by = Some(resolved_by.after(self.resolved_by, step));
        let goes_on = self.next_step().is_some();
        self.phase = if goes_on { RunPhase::Running { due_at: None } } else { RunPhase::Succeeded };
    }

    fn end(&mut self, phase: RunPhase) {
        self.phase = phase;
        self.progress = StepProgress::default();
    }

    /// Makes the run wait. Keeps the intent, because an unknown outcome must be queried before the next call.
    fn wait(&mut self, reason: WaitReason, until: Timestamp) {
        self.phase = RunPhase::Waiting { reason, until };
        self.done.retain(|step| !step.is_momentary());
    }

    /// Pauses the run before its next step, until an operator resumes the run.
    #[must_use]
    pub fn pause(self, now: Timestamp) -> Self {
        Self { phase: RunPhase::Paused, updated_at: now, ..self }
    }

    /// Ends the run: the invoice was cancelled before the authority validated it, or an operator cancelled the run.
    #[must_use]
    pub fn cancel(mut self, now: Timestamp) -> Self {
        self.end(RunPhase::Cancelled);
        self.updated_at = now;
        self
    }
}

/// Returns the key of a run's lane.
pub fn run_lane(taxpayer: TaxpayerId, run: RunId) -> String {
    format!("{taxpayer}/{run}")
}

/// Returns the taxpayer and the run from a key that `run_lane` made; `None` for another text.
pub fn parse_run_lane(key: &str) -> Option<(TaxpayerId, RunId)> {
    let (taxpayer, run) = key.split_once('/')?;
    Some((TaxpayerId(taxpayer.parse().ok()?), run.parse().ok()?))
}

/// An entry of the log of steps: one attempt at a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepRecord {
    pub step: Step,
    pub attempt: u32,
    /// `None` while a call with an effect is in flight, or if the process crashed during the call.
    pub outcome: Option<String>,
    pub started_at: Timestamp,
    pub duration_ms: Option<i64>,
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(operation: Operation) -> Run {
        let request = RunRequest::sample("INV001-94AD90FB-20261121", operation);
        Run::new(RunId::nil(), TaxpayerId(7), request, Timestamp::UNIX_EPOCH)
    }

    fn done_result() -> StepResult {
        StepResult::Done { resolved_by: ResolvedBy::Answer, qr_code: None }
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
            assert!(!called.clone().after(step, &lost, now).is_replaceable(), "{operation} unknown");
            let paused = called.clone().after(step, &StepResult::Pause { error: "cut".to_owned() }, now);
            assert!(!paused.is_replaceable(), "{operation} given up");
            let refused = called.clone().after(step, &StepResult::Refused { error: "no".to_owned() }, now);
            assert!(refused.is_replaceable(), "{operation} refused");
            assert_eq!(
                called.after(step, &done_result(), now).is_replaceable(),
                operation.is_repeatable(),
                "{operation}"
            );
        }
    }

    #[test]
    fn an_unchanged_state_ends_its_run() {
        let now = Timestamp::UNIX_EPOCH;
        let verdict = StepResult::Unchanged(ResolvedBy::Confirm);
        let run =
            run(Operation::Payment).begin_attempt(Step::Payment, now).after(Step::Payment, &verdict, now);
        assert_eq!((run.state(), run.resolved_by), (RunState::Succeeded, Some(ResolvedBy::Confirm)));
        assert_eq!((run.progress.intent, verdict.as_str(), verdict.error()), (None, "unchanged", None));
    }

    #[test]
    fn a_check_alone_leaves_the_document_replaceable() {
        let now = Timestamp::UNIX_EPOCH;
        let checked = run(Operation::Submit).begin_attempt(Step::IrnCheck, now).after(
            Step::IrnCheck,
            &done_result(),
            now,
        );
        assert!(checked.is_replaceable());
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn lost_result(until: Timestamp) -> StepResult {
        StepResult::Wait { reason: WaitReason::AuthorityUnavailable, error: "cut".to_owned(), until }
    }

    #[test]
    fn a_deferred_step_counts_no_attempt_and_no_time() {
        let failed = run(Operation::Submit).begin_attempt(Step::IrnCheck, at(0)).after(
            Step::IrnCheck,
            &lost_result(at(1)),
            at(0),
        );
        assert_eq!((failed.progress.attempt, failed.progress.failing_since), (1, Some(at(0))));
        let tried = failed.begin_attempt(Step::IrnCheck, at(1));
        let not_called = StepResult::Deferred { error: "held back".to_owned(), until: at(1) };
        let held = tried.after(Step::IrnCheck, &not_called, at(1));
        assert_eq!((held.progress.attempt, held.state()), (1, RunState::Waiting));
        let later = held.begin_attempt(Step::IrnCheck, at(90_000)).after(
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
    fn a_transmission_that_fails_at_its_last_step_only_is_given_up_all_the_same() {
        let mut run = run(Operation::Transmit);
        for (second, attempt) in [(0, 1), (10, 2), (20, 3)] {
            for step in [Step::Health, Step::AccessPoints] {
                run = run.begin_attempt(step, at(second)).after(step, &done_result(), at(second));
            }
            run = run.begin_attempt(Step::Send, at(second));
            assert_eq!(run.progress.attempt, attempt);
            run = run.after(Step::Send, &lost_result(at(second + 10)), at(second));
            assert_eq!(run.progress.failing_since, Some(at(0)));
        }
    }
}
