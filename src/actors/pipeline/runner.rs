//! Drives a run step by step. Before a step is called, the intent to call it is stored; after the call, its outcome. So
//! if the process dies, the next holder of the lane knows that the step may have been called.

use std::sync::Arc;
use std::time::Instant;

use rand::RngExt;
use uuid::Uuid;

use crate::actors::dispatch::WorkStatus;
use crate::actors::incidents::Incidents;
use crate::actors::pipeline::blocked_steps;
use crate::actors::pipeline::next_action::next_action;
use crate::actors::pipeline::step_executor::StepExecutor;
use crate::actors::pipeline::throughput::Throughput;
use crate::actors::taxpayer::command::StepOutcome;
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::authority::{Authority, CallerAccount, CryptoKeys, RetryPolicy};
use crate::domain::kernel::clock::{self, SharedClock};
use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::pipeline::{Run, RunState, Step, StepResult};
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::{self, LaneKind, Lease};
use crate::store::runs;

pub struct PipelineDeps {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub authority: Authority,
    /// Keys that encrypt the QR codes. If None, an invoice keeps its provisional QR code.
    pub keys: Option<CryptoKeys>,
    pub retry: RetryPolicy,
    pub clock: SharedClock,
    pub throughput: Arc<Throughput>,
    pub incidents: Arc<Incidents>,
}

/// Why a step could not be run. The lane is released and the run continues later.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Books(#[from] TaxpayerError),
}

impl RunError {
    /// True if another process has taken over the lane, so that this process must not release the lane.
    pub(super) fn is_stale(&self) -> bool {
        matches!(self, Self::Store(StoreError::Stale) | Self::Books(TaxpayerError::Store(StoreError::Stale)))
    }
}

enum NextStep {
    Call(StepIntent),
    /// The process crashed repeatedly during this step, so the step must not be called again.
    Quarantined(Run, Step),
}

/// A step that is about to be called and whose intent is stored.
struct StepIntent {
    run: Run,
    step: Step,
    attempt_id: Uuid,
    resuming: bool,
}

impl PipelineDeps {
    /// Runs the next step of the lane's run. Stores the outcome and, if the run has nothing more to do now, releases
    /// the lane in the same transaction.
    pub(super) async fn run_step(&self, lease: &Lease) -> Result<WorkStatus, RunError> {
        let Some((taxpayer, run)) = owner_and_run(&lease.key) else {
            self.drop_lane(lease).await?;
            return Ok(WorkStatus::Released);
        };
        let run = match self.record_intent(lease, taxpayer, run).await? {
            None => return Ok(WorkStatus::Released),
            Some(NextStep::Quarantined(run, step)) => return self.quarantine(lease, run, step).await,
            Some(NextStep::Call(intent)) => self.step(lease, intent).await?,
        };
        if !run.state.is_open() {
            self.throughput.ended(self.clock.now());
        }
        Ok(if run.state == RunState::Running { WorkStatus::More } else { WorkStatus::Released })
    }

    /// Stores that the run's next step is about to be called. Without a next step, releases the lane and returns None.
    async fn record_intent(
        &self,
        lease: &Lease,
        taxpayer: TaxpayerId,
        id: RunId,
    ) -> Result<Option<NextStep>, StoreError> {
        let now = self.clock.now();
        let tx = self.store.begin().await?;
        // The content of a run is replaced only under the taxpayer's lock, so with this lock it cannot change here.
        lanes::lock_unversioned(&tx, LaneKind::Taxpayer, &taxpayer.to_string()).await?;
        lanes::fence(&tx, lease).await?;
        let run = runs::owned_by_with_id(&tx, taxpayer, id).await?.filter(|run| run.state.is_open());
        let Some((run, step)) = run.and_then(|run| run.next_step().map(|step| (run, step))) else {
            lanes::release(&tx, lease, None).await?;
            tx.commit().await?;
            return Ok(None);
        };
        if run.is_quarantined() {
            return Ok(Some(NextStep::Quarantined(run, step)));
        }
        let resuming = run.intent == Some(step) && step.has_effect();
        let run = run.intending(step, now);
        let attempt_id = clock::new_id();
        runs::save(&tx, &[&run]).await?;
        runs::begin_step(&tx, &run, step, attempt_id, now).await?;
        tx.commit().await?;
        Ok(Some(NextStep::Call(StepIntent { run, step, attempt_id, resuming })))
    }

    /// Calls the step and records its outcome.
    async fn step(&self, lease: &Lease, intent: StepIntent) -> Result<Run, RunError> {
        let StepIntent { run, step, attempt_id, resuming } = intent;
        let started = Instant::now();
        let authority = self.authority.on_behalf_of(CallerAccount::Taxpayer(run.taxpayer_id));
        let caller = StepExecutor { authority: &authority, keys: self.keys.as_ref(), store: &self.store };
        let outcome = caller.call(&run, step, resuming, self.clock.now()).await;
        let verdict = next_action(outcome, &run, &self.retry, self.clock.now(), clock::chance().random());
        let verdict = self.keep_position(step, run.taxpayer_id, verdict);
        let duration_ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        tracing::debug!(irn = %run.irn, %step, attempt = run.attempt, outcome = verdict.as_str(), duration_ms, "step");
        let (taxpayer, gives_up) = (run.taxpayer_id, matches!(verdict, StepResult::Pause { .. }));
        let outcome = StepOutcome { lease: lease.clone(), run, step, attempt_id, verdict, duration_ms };
        let run = self.taxpayers.record_step(taxpayer, outcome).await?;
        if gives_up && run.state == RunState::Paused {
            self.incidents.run_paused(&run);
        }
        Ok(run)
    }

    /// Makes a deferred run due now if its step is blocked. The dispatcher skips the run until the step is unblocked,
    /// and meanwhile the run keeps its position in the queue.
    fn keep_position(&self, step: Step, taxpayer: TaxpayerId, verdict: StepResult) -> StepResult {
        match verdict {
            StepResult::Deferred { error, .. }
                if blocked_steps::is_blocked(&self.authority, step, taxpayer) =>
            {
                StepResult::Deferred { error, until: self.clock.now() }
            }
            verdict => verdict,
        }
    }

    async fn drop_lane(&self, lease: &Lease) -> Result<(), StoreError> {
        tracing::error!(lane = lease.key, "a run's lane has a key that names no run");
        let tx = self.store.begin().await?;
        lanes::release(&tx, lease, None).await?;
        tx.commit().await
    }
}

/// Parses the key of a run's lane: `taxpayer/run`.
pub(super) fn owner_and_run(key: &str) -> Option<(TaxpayerId, RunId)> {
    let (taxpayer, run) = key.split_once('/')?;
    Some((TaxpayerId(taxpayer.parse().ok()?), run.parse().ok()?))
}
