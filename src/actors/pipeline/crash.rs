//! Counts a crash of the process for the run whose step was active. After two crashes the run is paused, and an
//! operator decides whether to call the step again.

use crate::actors::dispatch::WorkStatus;
use crate::actors::pipeline::runner::{PipelineDeps, RunError, owner_and_run};
use crate::actors::taxpayer::command::StepOutcome;
use crate::domain::kernel::clock;
use crate::domain::kernel::crash::QUARANTINED;
use crate::domain::pipeline::{Run, RunState, Step, StepResult};
use crate::store::db::error::StoreError;
use crate::store::lanes::abandoned;
use crate::store::lanes::{self, LaneKind, Lease};
use crate::store::runs;

impl PipelineDeps {
    /// Counts a crash for the lane's run, if the run is still open, and resets the crash count of the lane.
    pub(super) async fn count_crash(&self, lease: &Lease) -> Result<(), StoreError> {
        let Some((taxpayer, id)) = owner_and_run(&lease.key) else { return Ok(()) };
        let tx = self.store.begin().await?;
        lanes::lock_unversioned(&tx, LaneKind::Taxpayer, &taxpayer.to_string()).await?;
        lanes::fence(&tx, lease).await?;
        let run = runs::owned_by_with_id(&tx, taxpayer, id).await?.filter(|run| run.state.is_open());
        if let Some(run) = run.map(Run::crashed) {
            runs::save(&tx, &[&run]).await?;
        }
        abandoned::reset_crashes(&tx, lease).await?;
        tx.commit().await
    }

    /// Pauses a run after repeated crashes, and releases its lane.
    pub(super) async fn quarantine(
        &self,
        lease: &Lease,
        run: Run,
        step: Step,
    ) -> Result<WorkStatus, RunError> {
        let taxpayer = run.taxpayer_id;
        let unheard = runs::unfinished_attempt(&self.store, taxpayer, run.id).await?;
        let verdict = StepResult::Pause { error: QUARANTINED.to_owned() };
        let attempt_id = unheard.unwrap_or_else(clock::new_id);
        let outcome = StepOutcome { lease: lease.clone(), run, step, attempt_id, verdict, duration_ms: 0 };
        let run = self.taxpayers.record_step(taxpayer, outcome).await?;
        if run.state == RunState::Paused {
            self.incidents.run_paused(&run);
        }
        Ok(WorkStatus::Released)
    }
}
