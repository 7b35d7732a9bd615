//! Runs that were claimed although the breaker of their next step holds their call back now: it opened meanwhile, or
//! another call became its probe. They go back to their place in the queue, and nothing is stored about them.

use std::time::Duration;

use authority_client::Authority;
use database::StoreError;

use crate::actors::pipeline::blocked_steps;
use crate::actors::pipeline::runner::PipelineDeps;
use crate::domain::pipeline::{Run, RunState, Step};
use crate::store::lanes::Lease;
use crate::store::lanes::leases::{self, LaneRelease, NextClaim};

impl PipelineDeps {
    /// Releases the lease of a waiting run whose next call its breaker would hold back. Returns false if the run must
    /// be driven: its call may be made, or it has not been tried yet, so that its first outcome must be stored.
    /// `authority` is the client for calls on behalf of the run's taxpayer.
    pub(super) async fn release_if_held_back(
        &self,
        lease: &Lease,
        authority: &Authority,
        run: &Run,
    ) -> Result<bool, StoreError> {
        if run.state() != RunState::Waiting {
            return Ok(false);
        }
        let Some(step) = run.next_step() else {
            return Ok(false);
        };
        let operation = blocked_steps::called_operation(step);
        let Some(wait) = authority.breaker_wait(operation, run.irn.as_str()) else {
            return Ok(false);
        };
        // Claims skip the run while its step is blocked, so that it may keep its place.
        let keeps_place = blocked_steps::is_blocked(authority, step, run.taxpayer_id);
        let tx = self.store.begin().await?;
        leases::release(&tx, &[release(lease, run, step, keeps_place, wait)]).await?;
        tx.commit().await?;
        Ok(true)
    }
}

fn release(lease: &Lease, run: &Run, step: Step, keeps_place: bool, wait: Duration) -> LaneRelease {
    let delay = if keeps_place { Duration::ZERO } else { wait };
    let next_claim = if run.must_run_alone() {
        NextClaim::Alone
    } else if keeps_place {
        NextClaim::InPlace
    } else {
        NextClaim::Ordinary
    };
    LaneRelease {
        next_step: Some(step.as_str()),
        next_claim,
        ..LaneRelease::new(lease, Some(delay))
    }
}
