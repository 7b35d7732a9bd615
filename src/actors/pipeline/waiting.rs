//! Finds out why a run waits: its place in the queue, the breaker of its next step, and the process that works on it.

use database::StoreError;
use jiff::Timestamp;

use crate::actors::pipeline::blocked_steps;
use crate::actors::pipeline::handle::PipelineHandle;
use crate::domain::pipeline::waiting::{HoldingReplica, WaitContext};
use crate::domain::pipeline::{Run, RunState};
use crate::store::lanes::views::LaneHolder;
use crate::store::operations::{audit, replicas};
use crate::store::runs::step_log;

impl PipelineHandle {
    /// Returns one sentence: what the run waits for, since when, until when, and what would end the wait.
    pub async fn explain_wait(&self, run: &Run, now: Timestamp) -> Result<String, StoreError> {
        let mut context = WaitContext {
            is_service_paused: self.authority.is_paused(),
            taxpayer_paused_since: self
                .taxpayers
                .paused_taxpayers()
                .find(run.taxpayer_id)
                .map(|pause| pause.since),
            ..WaitContext::default()
        };
        if run.state().is_open() {
            context.block = run.next_step().and_then(|step| {
                blocked_steps::describe_blocking_breaker(&self.authority, step, run.taxpayer_id)
            });
            if let Some(found) = self.backlog.position(run).await? {
                if let Some(holder) = found.holder {
                    context.worker = Some(self.holding_worker(run, holder).await?);
                }
                let ends_by_itself = self.backlog.holds().ends_by_itself(run);
                context.queue = ends_by_itself.then_some(found.place);
            }
        } else if run.state() == RunState::Paused {
            context.is_held = audit::find_runs_paused_by_operator(self.store.reader(), &[run.id])
                .await?
                .contains(&run.id);
        }
        if matches!(run.state(), RunState::Waiting | RunState::Paused) {
            let failure = step_log::last_failure(&self.store, run.taxpayer_id, run.id);
            context.failure = failure.await?;
        }
        Ok(run.explain_wait(&context, now))
    }

    /// Returns the replica that works on the run, as the holder of its lane. If the table of replicas does not have it,
    /// its id stands for its name.
    async fn holding_worker(
        &self,
        run: &Run,
        holder: LaneHolder,
    ) -> Result<HoldingReplica, StoreError> {
        let replica = replicas::find(&self.store, &holder.owner).await?;
        Ok(HoldingReplica {
            calls: self.backlog.measurements.step_under_way(run.id),
            silent_since: replica
                .as_ref()
                .filter(|replica| replica.is_silent)
                .map(|replica| replica.seen_at),
            name: replica.map_or(holder.owner, |replica| replica.name),
            lease_until: holder.lease_until,
        })
    }
}
