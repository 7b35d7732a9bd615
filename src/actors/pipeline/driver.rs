//! Drives a run: step by step, each with its intent written before the call and its outcome after it. The
//! process may die at any line: what is written tells whoever takes the lane over how to go on.

use std::sync::Arc;
use std::time::Instant;

use rand::RngExt;
use uuid::Uuid;

use crate::actors::dispatch::Handled;
use crate::actors::incidents::Incidents;
use crate::actors::pipeline::gates;
use crate::actors::pipeline::pace::Pace;
use crate::actors::pipeline::steps::Caller;
use crate::actors::pipeline::verdict::verdict;
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

/// What driving a run takes.
pub struct Gear {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub authority: Authority,
    /// Without keys the provisional QR code stays.
    pub keys: Option<CryptoKeys>,
    pub retry: RetryPolicy,
    pub clock: SharedClock,
    pub pace: Arc<Pace>,
    pub incidents: Arc<Incidents>,
}

/// Why a run could not be driven on. The lane is given back and the run goes on later.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Books(#[from] TaxpayerError),
}

impl Stop {
    /// Another has taken the lane: it is not ours to give back.
    pub(super) fn is_stale(&self) -> bool {
        matches!(self, Self::Store(StoreError::Stale) | Self::Books(TaxpayerError::Store(StoreError::Stale)))
    }
}

/// What comes next of a run.
enum Next {
    Call(Intent),
    /// The step ended processes before, and is not called.
    Quarantined(Run, Step),
}

/// A step about to be called.
struct Intent {
    run: Run,
    step: Step,
    attempt_id: Uuid,
    resuming: bool,
}

impl Gear {
    /// Takes the next step of the run of a lane. The lane is released with the last outcome.
    pub(super) async fn advance(&self, lease: &Lease) -> Result<Handled, Stop> {
        let Some((taxpayer, run)) = owner_and_run(&lease.key) else {
            self.drop_lane(lease).await?;
            return Ok(Handled::Released);
        };
        let run = match self.intend(lease, taxpayer, run).await? {
            None => return Ok(Handled::Released),
            Some(Next::Quarantined(run, step)) => return self.quarantine(lease, run, step).await,
            Some(Next::Call(intent)) => self.step(lease, intent).await?,
        };
        if !run.state.is_open() {
            self.pace.ended(self.clock.now());
        }
        Ok(if run.state == RunState::Running { Handled::More } else { Handled::Released })
    }

    /// Writes down which step is about to be called. `None` when there is none: the lane is released then.
    async fn intend(
        &self,
        lease: &Lease,
        taxpayer: TaxpayerId,
        id: RunId,
    ) -> Result<Option<Next>, StoreError> {
        let now = self.clock.now();
        let tx = self.store.begin().await?;
        // The content of a run may be replaced under the taxpayer's lock only.
        lanes::lock_unversioned(&tx, LaneKind::Taxpayer, &taxpayer.to_string()).await?;
        lanes::fence(&tx, lease).await?;
        let run = runs::owned_by_with_id(&tx, taxpayer, id).await?.filter(|run| run.state.is_open());
        let Some((run, step)) = run.and_then(|run| run.next_step().map(|step| (run, step))) else {
            lanes::release(&tx, lease, None).await?;
            tx.commit().await?;
            return Ok(None);
        };
        if run.is_quarantined() {
            return Ok(Some(Next::Quarantined(run, step)));
        }
        let resuming = run.intent == Some(step) && step.has_effect();
        let run = run.intending(step, now);
        let attempt_id = clock::new_id();
        runs::save(&tx, &[&run]).await?;
        runs::begin_step(&tx, &run, (step, attempt_id), now).await?;
        tx.commit().await?;
        Ok(Some(Next::Call(Intent { run, step, attempt_id, resuming })))
    }

    /// Calls the step and records what came of it.
    async fn step(&self, lease: &Lease, intent: Intent) -> Result<Run, Stop> {
        let Intent { run, step, attempt_id, resuming } = intent;
        let started = Instant::now();
        let authority = self.authority.on_behalf_of(CallerAccount::Taxpayer(run.taxpayer_id));
        let caller = Caller { authority: &authority, keys: self.keys.as_ref(), store: &self.store };
        let outcome = caller.call(&run, step, resuming, self.clock.now()).await;
        let verdict = verdict(outcome, &run, &self.retry, self.clock.now(), clock::chance().random());
        let verdict = self.in_place(step, run.taxpayer_id, verdict);
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

    /// Who stands at a gate that is shut keeps the place it has: it is due as soon as the gate opens.
    fn in_place(&self, step: Step, taxpayer: TaxpayerId, verdict: StepResult) -> StepResult {
        match verdict {
            StepResult::Hold { error, .. } if gates::is_shut(&self.authority, step, taxpayer) => {
                StepResult::Hold { error, until: self.clock.now() }
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

/// The key of a run's lane names its owner and itself.
pub(super) fn owner_and_run(key: &str) -> Option<(TaxpayerId, RunId)> {
    let (taxpayer, run) = key.split_once('/')?;
    Some((TaxpayerId(taxpayer.parse().ok()?), run.parse().ok()?))
}
