//! Counts the end of a process for the step of a run that was under way then. A step that ended two of them is not
//! called again: its run is paused, and an operator decides.

use crate::actors::dispatch::Handled;
use crate::actors::pipeline::driver::{Gear, Stop, owner_and_run};
use crate::actors::taxpayer::command::StepOutcome;
use crate::domain::kernel::clock;
use crate::domain::kernel::crash::QUARANTINED;
use crate::domain::pipeline::{Run, RunState, Step, StepResult};
use crate::store::db::error::StoreError;
use crate::store::lanes::abandoned;
use crate::store::lanes::{self, LaneKind, Lease};
use crate::store::runs;

impl Gear {
    /// Counts the end of a process for the run of a lane, where that is still open. The lane then has nothing more to
    /// tell of it.
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

    /// Pauses a run whose step is not to be called again, and gives its lane back.
    pub(super) async fn quarantine(&self, lease: &Lease, run: Run, step: Step) -> Result<Handled, Stop> {
        let taxpayer = run.taxpayer_id;
        let unheard = runs::unfinished_attempt(&self.store, taxpayer, run.id).await?;
        let verdict = StepResult::Pause { error: QUARANTINED.to_owned() };
        let attempt_id = unheard.unwrap_or_else(clock::new_id);
        let outcome = StepOutcome { lease: lease.clone(), run, step, attempt_id, verdict, duration_ms: 0 };
        let run = self.taxpayers.record_step(taxpayer, outcome).await?;
        if run.state == RunState::Paused {
            self.incidents.run_paused(&run);
        }
        Ok(Handled::Released)
    }
}
