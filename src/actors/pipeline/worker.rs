//! The actor of a run: a shell around the driver. Its panics are the supervision's business; a run whose
//! drive failed is given back with its lane.

use std::sync::Arc;

use futures_util::FutureExt;

use crate::actors::dispatch::{self, Dispatcher, Duty, Handled};
use crate::actors::pipeline::driver::Gear;
use crate::actors::pipeline::gates;
use crate::actors::supervision::{
    ActorKind, Admission, Arbiters, CommandBatch, CommandId, Registry, RegistrySettings, RestartPolicy, Tree,
    Worker, batch_actor,
};
use crate::store::db::error::StoreError;
use crate::store::lanes::Lease;

/// Takes the next step of the run of a lane.
#[derive(Debug)]
pub struct Advance(pub Lease);

/// The actors of running runs, by the key of their lane.
pub type PipelineActors = Registry<String, Advance, Handled>;

struct PipelineActor {
    gear: Arc<Gear>,
}

impl Worker for PipelineActor {
    type Command = Advance;
    type Reply = Handled;

    fn name(_: &Advance) -> &'static str {
        "advance"
    }

    async fn work(self, batch: CommandBatch<Advance>) -> (Self, Vec<(CommandId, Handled)>) {
        let mut replies = Vec::new();
        for task in batch.tasks() {
            replies.push((task.id, self.advance(&task.0).await));
        }
        (self, replies)
    }
}

impl PipelineActor {
    async fn advance(&self, lease: &Lease) -> Handled {
        match self.gear.advance(lease).await {
            Ok(handled) => handled,
            Err(stop) if stop.is_stale() => Handled::Released,
            Err(stop) => {
                tracing::warn!(lane = lease.key, error = %stop, "a run could not be driven on; it will be later");
                Handled::Unfinished
            }
        }
    }
}

/// A run whose crash could not be counted waits for the end of its lease: it must not be driven uncounted.
async fn counted(gear: &Gear, lease: &Lease) -> Handled {
    match gear.count_crash(lease).await {
        Ok(()) => Handled::More,
        Err(StoreError::Stale) => Handled::Released,
        Err(error) => {
            tracing::warn!(lane = lease.key, %error, "failed to count the end of a process; will retry");
            Handled::Released
        }
    }
}

/// Makes the registry of the pipeline's actors and the dispatcher that feeds it.
pub fn dispatcher(
    gear: Arc<Gear>,
    duty: Duty,
    tree: &Tree,
    arbiters: &Arc<Arbiters>,
) -> (Dispatcher, Arc<PipelineActors>) {
    let limits = dispatch::limits(&duty);
    let admission = Admission::new(limits, Arc::clone(tree.counters()));
    let settings = RegistrySettings { kind: ActorKind::Pipeline, policy: RestartPolicy::default() };
    let (store, authority) = (gear.store.clone(), gear.authority.clone());
    let counting = Arc::clone(&gear);
    let actors = Arc::new(Registry::new(tree, arbiters, admission, settings, move |_: &String, seat| {
        let gear = Arc::clone(&gear);
        batch_actor::start(seat, 1, move || PipelineActor { gear: Arc::clone(&gear) })
    }));
    let registry = Arc::clone(&actors);
    let dispatcher = Dispatcher::new(store, duty, move |lease| {
        let actors = Arc::clone(&registry);
        async move { dispatch::rounds(&actors, &lease.key, || Advance(lease.clone())).await }.boxed_local()
    });
    let dispatcher = dispatcher.gated(move || gates::shut(&authority)).counting(move |crashed| {
        let gear = Arc::clone(&counting);
        async move { counted(&gear, &crashed.lease).await }.boxed_local()
    });
    (dispatcher, actors)
}
