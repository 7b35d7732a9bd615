//! The actor of a run. If a step cannot be run, for example because the database fails, the lane is released and the
//! run continues later.

use std::sync::Arc;

use futures_util::FutureExt;

use crate::actors::dispatch::{self, Dispatcher, DispatcherConfig, WorkStatus};
use crate::actors::pipeline::blocked_steps;
use crate::actors::pipeline::runner::PipelineDeps;
use crate::actors::supervision::{
    Admission, Arbiters, CommandBatch, NodeKind, Registry, RegistrySettings, RestartPolicy, Tree, Worker,
    batch_actor,
};
use crate::domain::kernel::ids::CommandId;
use crate::store::db::error::StoreError;
use crate::store::lanes::Lease;

/// The command to run the next step of the run whose lane is leased.
#[derive(Debug)]
pub struct Advance(pub Lease);

/// The actors of active runs. The registry key is the key of the run's lane.
pub type PipelineActors = Registry<String, Advance, WorkStatus>;

struct PipelineActor {
    deps: Arc<PipelineDeps>,
}

impl Worker for PipelineActor {
    type Command = Advance;
    type Reply = WorkStatus;

    fn name(_: &Advance) -> &'static str {
        "advance"
    }

    async fn work(self, batch: CommandBatch<Advance>) -> (Self, Vec<(CommandId, WorkStatus)>) {
        let mut replies = Vec::new();
        for task in batch.tasks() {
            replies.push((task.id, self.advance(&task.0).await));
        }
        (self, replies)
    }
}

impl PipelineActor {
    async fn advance(&self, lease: &Lease) -> WorkStatus {
        match self.deps.run_step(lease).await {
            Ok(handled) => handled,
            Err(stop) if stop.is_stale() => WorkStatus::Released,
            Err(stop) => {
                tracing::warn!(lane = lease.key, error = %stop, "failed to run a step; will retry");
                WorkStatus::Unfinished
            }
        }
    }
}

/// Counts a crash for the lane's run. If counting fails, the lane keeps its lease until the lease expires, because the
/// run must not continue uncounted.
async fn counted(deps: &PipelineDeps, lease: &Lease) -> WorkStatus {
    match deps.count_crash(lease).await {
        Ok(()) => WorkStatus::More,
        Err(StoreError::Stale) => WorkStatus::Released,
        Err(error) => {
            tracing::warn!(lane = lease.key, %error, "failed to count a crash; will retry");
            WorkStatus::Released
        }
    }
}

/// Creates the registry of the run actors and the dispatcher that sends lanes to them.
pub fn dispatcher(
    deps: Arc<PipelineDeps>,
    config: DispatcherConfig,
    tree: &Tree,
    arbiters: &Arc<Arbiters>,
) -> (Dispatcher, Arc<PipelineActors>) {
    let limits = dispatch::limits(&config);
    let admission = Admission::new(limits, Arc::clone(tree.counters()));
    let settings = RegistrySettings { kind: NodeKind::Pipeline, policy: RestartPolicy::default() };
    let (store, authority) = (deps.store.clone(), deps.authority.clone());
    let counting = Arc::clone(&deps);
    let actors = Arc::new(Registry::new(tree, arbiters, admission, settings, move |_: &String, seat| {
        let deps = Arc::clone(&deps);
        batch_actor::start(seat, 1, move || PipelineActor { deps: Arc::clone(&deps) })
    }));
    let registry = Arc::clone(&actors);
    let dispatcher = Dispatcher::new(store, config, move |lease| {
        let actors = Arc::clone(&registry);
        async move { dispatch::drive_until_released(&actors, &lease.key, || Advance(lease.clone())).await }
            .boxed_local()
    });
    let dispatcher = dispatcher
        .with_blocked_steps(move || blocked_steps::list(&authority))
        .with_crash_counter(move |crashed| {
            let deps = Arc::clone(&counting);
            async move { counted(&deps, &crashed.lease).await }.boxed_local()
        });
    (dispatcher, actors)
}
