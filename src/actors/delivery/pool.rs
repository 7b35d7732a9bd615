//! The endpoints that this process delivers to: a supervised task for each endpoint that it has leased, on the core
//! that the hash of the endpoint's key selects. The tasks share the reading of due deliveries and the writing of
//! outcomes.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use database::StoreError;
use futures_util::FutureExt;
use supervision::{Arbiters, TaskEnd, Tree, hash_key, run_task};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use crate::actors::delivery::batches::BatchSender;
use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::due_work::DueWorkReader;
use crate::actors::delivery::endpoint_worker::{EndpointWorker, SharedBatches};
use crate::actors::delivery::error::DeliveryError;
use crate::actors::delivery::outcome_writer::OutcomeWriter;
use crate::actors::delivery::serving::ServedEndpoints;
use crate::actors::dispatch::{Assignment, Dispatcher, DispatcherConfig, WorkStatus};
use crate::actors::kinds;
use crate::domain::kernel::ids::EndpointKey;
use crate::store::lanes::Lease;

pub struct DeliveryPool {
    deps: Arc<DeliveryDeps>,
    shared: Arc<SharedBatches>,
    tree: Tree,
    arbiters: Arc<Arbiters>,
    endpoints: TaskTracker,
    serving: ServedEndpoints,
    /// The worker slots of the dispatcher that claims endpoints for this pool. Set when the dispatcher is made.
    slots: OnceLock<Arc<Semaphore>>,
}

impl DeliveryPool {
    pub fn new(deps: Arc<DeliveryDeps>, tree: &Tree, arbiters: &Arc<Arbiters>) -> Arc<Self> {
        let due_reader = DueWorkReader(Arc::clone(&deps));
        let outcome_writer = OutcomeWriter::new(&deps);
        let shared = SharedBatches {
            due_reader: BatchSender::start(due_reader, tree, arbiters),
            outcome_writer: BatchSender::start(outcome_writer, tree, arbiters),
        };
        Arc::new(Self {
            deps,
            shared: Arc::new(shared),
            tree: tree.clone(),
            arbiters: Arc::clone(arbiters),
            endpoints: TaskTracker::new(),
            serving: ServedEndpoints::default(),
            slots: OnceLock::new(),
        })
    }

    /// Returns the dispatcher that claims endpoints with due deliveries for this pool. Its `concurrency_max` is the
    /// number of endpoints that are served at the same time.
    pub fn dispatcher(self: &Arc<Self>, config: DispatcherConfig) -> Dispatcher {
        let serving = Arc::clone(self);
        let counting = Arc::clone(&self.deps);
        let dispatcher = Dispatcher::new(
            self.deps.store.clone(),
            config,
            move |Assignment { lease, .. }| {
                let pool = Arc::clone(&serving);
                async move { pool.endpoints.track_future(pool.serve(lease)).await }.boxed_local()
            },
        )
        .with_crash_counter(move |crashed| {
            let deps = Arc::clone(&counting);
            async move { deps.record_crashes(&crashed).await }.boxed_local()
        });
        self.slots.get_or_init(|| dispatcher.slots());
        dispatcher
    }

    /// Delivers to the endpoint until nothing is due. After an error or a panic all attempts in flight are dropped, and
    /// their events are delivered again later.
    async fn serve(&self, lease: Lease) -> WorkStatus {
        let Ok(endpoint) = lease.key.parse().map(EndpointKey) else {
            return WorkStatus::Unfinished;
        };
        if self.deps.is_closing() {
            return WorkStatus::Unfinished;
        }
        let served = self.serving.begin_serving(&lease).await;
        let (shard, arbiter) = self.arbiters.for_key(hash_key(&lease.key));
        let node = self
            .tree
            .add_node(kinds::WEBHOOK, shard, lease.key.as_str());
        let worker = EndpointWorker::new(
            Arc::clone(&self.deps),
            Arc::clone(&self.shared),
            lease,
            endpoint,
            served.lease_end(),
        );
        match run_task(arbiter, node, move |node| worker.serve(node)).await {
            TaskEnd::Returned(Ok(handled)) => handled,
            TaskEnd::Returned(Err(DeliveryError::Store(StoreError::Stale))) => WorkStatus::Released,
            TaskEnd::Returned(Err(DeliveryError::Panic)) | TaskEnd::Panicked => {
                WorkStatus::Panicked
            }
            TaskEnd::Returned(Err(error)) => {
                tracing::warn!(%endpoint, %error, "deliveries stopped; will retry");
                WorkStatus::Unfinished
            }
            TaskEnd::Stopped => WorkStatus::Unfinished,
        }
    }

    /// Serves no further endpoints, and claims none, so that other replicas get them at once. Attempts in flight are
    /// finished, and no new attempt starts.
    pub fn close(&self) {
        if let Some(slots) = self.slots.get() {
            slots.close();
        }
        self.deps.close();
        self.endpoints.close();
    }

    /// Waits until no endpoint is served, but at most `max_wait`. Returns false if an endpoint is still served then.
    /// Call `close` first.
    pub async fn drain(&self, max_wait: Duration) -> bool {
        timeout(max_wait, self.endpoints.wait()).await.is_ok()
    }
}
