//! Counts a crash of the process for the run whose step was active. After two crashes the run is paused, and an
//! operator decides whether to call the step again.

use crate::actors::pipeline::runner::{PipelineDeps, owner_and_run};
use crate::domain::pipeline::Run;
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
}
