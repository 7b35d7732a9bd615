//! The actor that delivers to one endpoint (a thin wrapper around `EndpointWorker`) and the dispatcher that sends
//! leased lanes to these actors. The dispatcher's `concurrency_max` is the number of endpoints served concurrently.

use std::sync::Arc;

use futures_util::FutureExt;

use crate::actors::delivery::due_reader::DueDeliveryReader;
use crate::actors::delivery::endpoint_worker::{DeliveryDeps, DeliveryError, EndpointWorker};
use crate::actors::delivery::outcome_writer::OutcomeWriter;
use crate::actors::dispatch::{self, Assignment, Dispatcher, DispatcherConfig, WorkStatus};
use crate::actors::supervision::{
    Admission, Arbiters, CommandBatch, NodeKind, Registry, RegistrySettings, RestartPolicy, Tree, Worker,
    batch_actor,
};
use crate::domain::kernel::ids::{CommandId, TaxpayerId};
use crate::store::db::error::StoreError;
use crate::store::lanes::Lease;

/// The command to deliver the due events of the endpoint whose lane is leased.
#[derive(Debug)]
pub struct Deliver(pub Lease);

/// The running endpoint actors. The registry key is the key of the endpoint's lane.
pub type WebhookActors = Registry<String, Deliver, WorkStatus>;

struct WebhookActor {
    worker: EndpointWorker,
}

impl Worker for WebhookActor {
    type Command = Deliver;
    type Reply = WorkStatus;

    fn name(_: &Deliver) -> &'static str {
        "deliver"
    }

    async fn work(mut self, batch: CommandBatch<Deliver>) -> (Self, Vec<(CommandId, WorkStatus)>) {
        let mut replies = Vec::new();
        for task in batch.tasks() {
            replies.push((task.id, self.deliver(&task.0).await));
        }
        (self, replies)
    }
}

impl WebhookActor {
    /// Runs one round of deliveries. After an error all attempts in flight are dropped, and their events are delivered
    /// again later.
    async fn deliver(&mut self, lease: &Lease) -> WorkStatus {
        let Ok(taxpayer) = lease.key.parse().map(TaxpayerId) else { return WorkStatus::Unfinished };
        let error = match self.worker.deliver(lease, taxpayer).await {
            Ok(handled) => return handled,
            Err(error) => error,
        };
        self.worker.abandon();
        if matches!(error, DeliveryError::Store(StoreError::Stale)) {
            return WorkStatus::Released;
        }
        tracing::warn!(%taxpayer, %error, "deliveries stopped; will retry");
        WorkStatus::Unfinished
    }
}

/// Creates the registry of the endpoint actors and the dispatcher that sends lanes to them.
pub fn dispatcher(
    deps: Arc<DeliveryDeps>,
    config: DispatcherConfig,
    tree: &Tree,
    arbiters: &Arc<Arbiters>,
) -> (Dispatcher, Arc<WebhookActors>) {
    let limits = dispatch::limits(&config);
    let admission = Admission::new(limits, Arc::clone(tree.counters()));
    let settings = RegistrySettings { kind: NodeKind::Webhook, policy: RestartPolicy::default() };
    let store = deps.store.clone();
    let due_reader = Arc::new(DueDeliveryReader::start(&deps, tree, arbiters));
    let outcome_writer = Arc::new(OutcomeWriter::start(&deps, tree, arbiters));
    let counting = Arc::clone(&deps);
    let actors = Arc::new(Registry::new(tree, arbiters, admission, settings, move |_: &String, seat| {
        let (deps, due_reader, outcome_writer) =
            (Arc::clone(&deps), Arc::clone(&due_reader), Arc::clone(&outcome_writer));
        batch_actor::start(seat, 1, move || WebhookActor {
            worker: EndpointWorker::new(
                Arc::clone(&deps),
                Arc::clone(&due_reader),
                Arc::clone(&outcome_writer),
            ),
        })
    }));
    let registry = Arc::clone(&actors);
    let dispatcher = Dispatcher::new(store, config, move |Assignment { lease, .. }| {
        let actors = Arc::clone(&registry);
        async move { dispatch::drive_until_released(&actors, &lease.key, || Deliver(lease.clone())).await }
            .boxed_local()
    });
    let dispatcher = dispatcher.with_crash_counter(move |crashed| {
        let deps = Arc::clone(&counting);
        async move { deps.count_crashes(&crashed).await }.boxed_local()
    });
    (dispatcher, actors)
}
