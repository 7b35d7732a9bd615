//! Drives a run step by step. Before a step with an effect on the authority is called, the intent to call it is stored.
//! After the call, its outcome is stored. So if the process dies, the process that continues the run knows that the
//! step may have been called.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use authority_client::{Authority, AuthorityFailure, CryptoKeys, RetryPolicy};
use rand::RngExt;
use supervision::Node;
use timing::clock::{self, SharedClock};
use uuid::Uuid;

use crate::actors::call_failure::judge_failure;
use crate::actors::dispatch::{IsolationTurn, WorkStatus, run_in_turn};
use crate::actors::durations::WorkDurations;
use crate::actors::incidents::Incidents;
use crate::actors::on_behalf::authority_for_taxpayer;
use crate::actors::pipeline::blocked_steps;
use crate::actors::pipeline::crash::{delay_before_turn, end_interrupted_attempts};
use crate::actors::pipeline::measurements::RunMeasurements;
use crate::actors::pipeline::next_action::next_action;
use crate::actors::pipeline::run_error::RunError;
use crate::actors::pipeline::run_span::begin_span;
use crate::actors::pipeline::step_executor::{ExecutionResult, StepError, StepExecutor};
use crate::actors::taxpayer::commands::{RecordSteps, StepOutcome};
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::domain::pipeline::{Run, RunState, Step, StepResult, parse_run_lane_key};
use crate::store::Store;
use crate::store::lanes::Lease;
use crate::store::lanes::leases::{self, LaneRelease};
use crate::store::runs;
use crate::store::runs::step_log;

/// A call that got no slot after less than this time did not wait for one: it was refused at once, because too many
/// calls were waiting already.
const SLOT_WAIT_MIN: Duration = Duration::from_secs(1);

pub struct PipelineDeps {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub authority: Authority,
    /// Keys that encrypt the QR codes. If `None`, an invoice keeps its provisional QR code.
    pub keys: Option<CryptoKeys>,
    pub retry: RetryPolicy,
    pub clock: SharedClock,
    pub measurements: Arc<RunMeasurements>,
    pub incidents: Arc<Incidents>,
    pub durations: Arc<WorkDurations>,
}

/// A leased run whose work starts now.
pub(super) struct RunStart<'a> {
    pub(super) lease: &'a Lease,
    /// Tells the watchdog of each step.
    pub(super) node: &'a Node,
    /// The turn of isolated runs (`dispatch::isolation`), if this run was claimed with it.
    pub(super) turn: Option<IsolationTurn>,
}

/// A run that this process works on, with the steps that are not stored yet.
struct RunSession<'a> {
    lease: &'a Lease,
    /// The client for calls on behalf of the run's taxpayer.
    authority: Authority,
    /// Tells the watchdog of each step.
    node: &'a Node,
    /// The run with the outcomes of `steps` applied.
    run: Run,
    steps: Vec<StepOutcome>,
    /// Set if the intent to call the next step is stored.
    intent: Option<StoredIntent>,
    /// The step that was answered last, and when it began. Its time ends when the next step begins.
    answered: Option<(Step, Instant)>,
}

/// The stored intent to call a step with an effect.
struct StoredIntent {
    attempt_id: Uuid,
    /// True if an earlier call of the step has an unknown outcome.
    resuming: bool,
}

impl PipelineDeps {
    /// Calls the steps of a leased run until it ends, pauses or must wait, and then releases its lease.
    ///
    /// The intent to call a step with an effect is stored before the call, together with the steps before it. The
    /// outcome of a step without an effect is stored later, together with the steps after it. If the process crashes
    /// before that, the step is called again.
    ///
    /// When the process shuts down (`is_closed`), the run stops before its next step.
    pub(super) async fn drive(
        &self,
        start: RunStart<'_>,
        is_closed: &AtomicBool,
    ) -> Result<WorkStatus, RunError> {
        let RunStart { lease, node, turn } = start;
        let Some((taxpayer, id)) = parse_run_lane_key(&lease.key) else {
            tracing::error!(lane = lease.key, "a run's lane has a key that names no run");
            return self.release_without_run(lease).await;
        };
        let run = runs::find_owned_by_id(self.store.reader(), taxpayer, id).await?;
        let Some(run) = run else {
            return self.release_without_run(lease).await;
        };
        let authority = authority_for_taxpayer(&self.authority, &self.store, taxpayer).await?;
        let span = begin_span(&run);
        let session = RunSession {
            lease,
            authority,
            node,
            run,
            steps: Vec::new(),
            intent: None,
            answered: None,
        };
        let driven = self.drive_session(session, turn, is_closed);
        span.context().scope(driven).await
    }

    async fn drive_session(
        &self,
        mut session: RunSession<'_>,
        turn: Option<IsolationTurn>,
        is_closed: &AtomicBool,
    ) -> Result<WorkStatus, RunError> {
        if !session.run.state().is_open() {
            // The taxpayer's actor releases the lease, unless the run has been reopened since it was read.
            session = self.record_steps(session).await?;
            if session.run.callable_step().is_none() {
                return Ok(WorkStatus::Released);
            }
        }
        if session.run.is_quarantined() {
            return self.quarantine(session).await;
        }
        let history = session.run.progress.crash_history;
        if let Some(delay) = delay_before_turn(history, turn.as_ref()) {
            self.release_to_wait_for_turn(session.lease, &session.run, delay)
                .await?;
            return Ok(WorkStatus::Released);
        }
        let is_held_back =
            self.release_if_held_back(session.lease, &session.authority, &session.run);
        if is_held_back.await? {
            return Ok(WorkStatus::Released);
        }
        end_interrupted_attempts(&self.store, &session.run).await?;
        // The new state `Running` is stored with the next record of steps.
        let run = session.run.into_running();
        let calls = Box::pin(self.call_steps(RunSession { run, ..session }, is_closed));
        run_in_turn(turn, history, calls).await
    }

    /// Calls and records steps until the run has ended, is paused or must wait, or the process shuts down.
    async fn call_steps(
        &self,
        mut session: RunSession<'_>,
        is_closed: &AtomicBool,
    ) -> Result<WorkStatus, RunError> {
        while !is_closed.load(Ordering::SeqCst) {
            match session.run.callable_step() {
                Some(step) if !step.has_effect() || session.intent.is_some() => {
                    session = self.call_step(session, step).await;
                }
                _ => {
                    session = self.record_steps(session).await?;
                    if session.run.callable_step().is_none() {
                        return Ok(self.measure_run_end(&session));
                    }
                }
            }
        }
        // Steps without an effect need no record here, because they can be called again when the run continues.
        let may_repeat = session
            .steps
            .iter()
            .all(|outcome| !outcome.step.has_effect());
        if session.run.callable_step().is_none() || !may_repeat {
            session = self.record_steps(session).await?;
        }
        Ok(if session.run.callable_step().is_some() {
            WorkStatus::Unfinished
        } else {
            self.measure_run_end(&session)
        })
    }

    /// Measures the last step and, if the run is not open any more, its end. Returns `Released`, because the last call
    /// of `record_steps` has released the lease of the run.
    fn measure_run_end(&self, session: &RunSession<'_>) -> WorkStatus {
        self.measure_step(session.answered);
        if !session.run.state().is_open() {
            let now = self.clock.now();
            self.measurements.record_run_end(&session.run, now);
            self.record_usage(&session.run);
        }
        WorkStatus::Released
    }

    fn record_usage(&self, run: &Run) {
        let state = run.state();
        if matches!(state, RunState::Succeeded | RunState::Refused) {
            let is_refused = state == RunState::Refused;
            self.taxpayers
                .usage()
                .record_run(run.taxpayer_id, is_refused);
        }
    }

    fn measure_step(&self, answered: Option<(Step, Instant)>) {
        if let Some((step, began)) = answered {
            self.measurements
                .record_step(step, began.elapsed(), self.clock.now());
        }
    }

    /// Calls a step and applies its outcome to the session's run.
    async fn call_step<'a>(&self, mut session: RunSession<'a>, step: Step) -> RunSession<'a> {
        self.measure_step(session.answered.take());
        let started_at = self.clock.now();
        let (run, id, resuming) = match session.intent.take() {
            Some(StoredIntent {
                attempt_id,
                resuming,
            }) => (session.run, attempt_id, resuming),
            None => (
                session.run.begin_attempt(step, started_at),
                clock::new_id(),
                false,
            ),
        };
        let started = Instant::now();
        session
            .node
            .mark_batch_started(step.as_str(), 1, Duration::ZERO);
        let caller = StepExecutor {
            authority: &session.authority,
            keys: self.keys.as_ref(),
            store: &self.store,
        };
        let under_way = self.measurements.begin_step(run.id, step, started_at);
        let outcome = caller.execute_step(&run, step, resuming, started_at).await;
        let failure = match &outcome {
            Err(StepError::Call(failure)) => judge_failure(
                &session.authority,
                blocked_steps::called_operation(step),
                run.irn.as_str(),
                failure,
            ),
            _ => None,
        };
        under_way.end(failure.is_some());
        let now = self.clock.now();
        let verdict = self.judge_outcome(outcome, &run, step, started.elapsed());
        let duration_ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        tracing::debug!(irn = %run.irn, %step, attempt = run.progress.attempt, outcome = verdict.as_str(), duration_ms, "step");
        let attempt = run.progress.attempt;
        let run = run.after_step(step, &verdict, now);
        let is_answered = matches!(
            verdict,
            StepResult::Done { .. } | StepResult::Unchanged(_) | StepResult::Refused { .. }
        );
        session.answered = is_answered.then_some((step, started));
        session.steps.push(StepOutcome {
            step,
            id,
            attempt,
            started_at,
            verdict,
            duration_ms,
            failure,
        });
        RunSession { run, ..session }
    }

    /// Returns what follows the outcome of a call that took this long. If the step is blocked, or if the call waited
    /// for a slot in vain, a deferred run becomes due at once and not later, so that it keeps its place in the queue.
    /// The dispatcher skips it while its step is blocked.
    fn judge_outcome(
        &self,
        outcome: ExecutionResult,
        run: &Run,
        step: Step,
        took: Duration,
    ) -> StepResult {
        let now = self.clock.now();
        let found_no_slot = matches!(
            &outcome,
            Err(StepError::Call(AuthorityFailure::QueueFull { .. }))
        );
        if found_no_slot {
            self.measurements.record_missing_slot(step, now);
        }
        let jitter = clock::system_rng().random();
        let keeps_place = found_no_slot && took >= SLOT_WAIT_MIN
            || blocked_steps::is_blocked(&self.authority, step, run.taxpayer_id);
        match next_action(outcome, run, &self.retry, now, jitter) {
            StepResult::Deferred { reason, error, .. } if keeps_place => StepResult::Deferred {
                reason,
                error,
                until: now,
            },
            verdict => verdict,
        }
    }

    /// Stores the session's steps and, if the next step has an effect, the intent to call it. Returns the session with
    /// the stored run, which may differ from the session's: an operator may have paused it, or a caller may have
    /// replaced its document. If no step of the run can be called now, the same transaction releases its lease.
    async fn record_steps<'a>(&self, session: RunSession<'a>) -> Result<RunSession<'a>, RunError> {
        let RunSession {
            lease,
            authority,
            node,
            run: before,
            steps,
            answered,
            ..
        } = session;
        let has_signed = steps.iter().any(|outcome| {
            outcome.step == Step::Sign && matches!(outcome.verdict, StepResult::Done { .. })
        });
        let gives_up = steps
            .iter()
            .any(|outcome| matches!(outcome.verdict, StepResult::Pause { .. }));
        let attempt_id = clock::new_id();
        let progress = RecordSteps {
            lease: lease.clone(),
            run: before.id,
            irn: before.irn.clone(),
            digest: before.digest.clone(),
            steps,
            next_attempt: attempt_id,
        };
        let run = self.taxpayers.send(before.taxpayer_id, progress).await?;
        if has_signed {
            self.durations
                .record_signature(run.created_at, self.clock.now());
        }
        if gives_up && run.state() == RunState::Paused {
            self.incidents.record_paused_run(&run);
        }
        let is_intended = run.digest == before.digest
            && run.progress.intent.is_some()
            && run.progress.intent == run.next_step();
        let intent = is_intended.then(|| StoredIntent {
            attempt_id,
            resuming: before.progress.intent.is_some()
                && before.progress.intent == run.progress.intent,
        });
        Ok(RunSession {
            lease,
            authority,
            node,
            run,
            steps: Vec::new(),
            intent,
            answered,
        })
    }

    /// Pauses a run whose step crashed the process or panicked repeatedly: the step must not be called again.
    async fn quarantine(&self, mut session: RunSession<'_>) -> Result<WorkStatus, RunError> {
        let run = &session.run;
        if let Some(step) = run.next_step() {
            let unfinished =
                step_log::unfinished_attempt(&self.store, run.taxpayer_id, run.id).await?;
            session.steps.push(StepOutcome {
                step,
                id: unfinished.unwrap_or_else(clock::new_id),
                attempt: run.progress.attempt,
                started_at: self.clock.now(),
                verdict: StepResult::Pause {
                    error: run.progress.crash_history.quarantine_message().to_owned(),
                },
                duration_ms: 0,
                failure: None,
            });
        }
        let session = self.record_steps(session).await?;
        // If a caller has replaced the run's document meanwhile, the run is not paused, and this process still holds
        // its lease.
        Ok(if session.run.callable_step().is_some() {
            WorkStatus::Unfinished
        } else {
            WorkStatus::Released
        })
    }

    /// Releases the lease of a run that does not exist.
    async fn release_without_run(&self, lease: &Lease) -> Result<WorkStatus, RunError> {
        let tx = self.store.begin().await?;
        leases::release(&tx, &[LaneRelease::new(lease, None)]).await?;
        tx.commit().await?;
        Ok(WorkStatus::Released)
    }
}
