//! Loads endpoints and their due deliveries. Requests of several workers share one query: those that arrive during a
//! query form the next batch.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;

use crate::actors::delivery::batching::{self, BatchWork};
use crate::actors::delivery::endpoint_worker::DeliveryDeps;
use crate::actors::delivery::in_flight::max_held;
use crate::actors::supervision::{
    Admission, Arbiters, CommandBatch, NodeKind, Registry, RegistrySettings, RestartPolicy, Tree, Worker,
    batch_actor,
};
use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::Event;
use crate::domain::kernel::ids::{CommandId, TaxpayerId};
use crate::store::db::error::StoreError;
use crate::store::webhooks;
use crate::store::webhooks::delivery_queue;

/// The maximum number of endpoints in one query.
const BATCH_MAX: usize = 128;

/// An endpoint and its due deliveries.
pub(super) struct DueWork {
    pub(super) recipient: webhooks::LoadedEndpoint,
    /// The due deliveries, including deliveries in flight. The delivery that has been due for the longest time is
    /// first.
    pub(super) next: VecDeque<(Delivery, Event)>,
    /// The time at which the deliveries were queried.
    pub(super) at: Timestamp,
}

type LoadResult = Result<Option<DueWork>, StoreError>;

/// The handle of the single actor that reads for all endpoints.
pub(super) struct DueDeliveryReader(Registry<&'static str, TaxpayerId, LoadResult>);

impl DueDeliveryReader {
    pub(super) fn start(deps: &Arc<DeliveryDeps>, tree: &Tree, arbiters: &Arc<Arbiters>) -> Self {
        let admission = Admission::new(batching::limits(), Arc::clone(tree.counters()));
        let settings = RegistrySettings { kind: NodeKind::Webhook, policy: RestartPolicy::default() };
        let deps = Arc::clone(deps);
        Self(Registry::new(tree, arbiters, admission, settings, move |_, seat| {
            let deps = Arc::clone(&deps);
            batch_actor::start(seat, BATCH_MAX, move || DueReaderWorker(Arc::clone(&deps)))
        }))
    }

    /// Loads a taxpayer's endpoint and its due deliveries. Returns `None` if the taxpayer has no endpoint.
    pub(super) async fn load(&self, taxpayer: TaxpayerId) -> LoadResult {
        self.0.send(&"due-delivery-reader", taxpayer).await.unwrap_or(Err(StoreError::Unsettled))
    }
}

struct DueReaderWorker(Arc<DeliveryDeps>);

impl Worker for DueReaderWorker {
    type Command = TaxpayerId;
    type Reply = LoadResult;

    fn name(_: &TaxpayerId) -> &'static str {
        "load"
    }

    async fn work(self, batch: CommandBatch<TaxpayerId>) -> (Self, Vec<(CommandId, LoadResult)>) {
        let answers = batching::run_batch(&self, &batch).await;
        (self, answers)
    }
}

impl BatchWork for DueReaderWorker {
    type Item = TaxpayerId;
    type Output = Option<DueWork>;

    async fn run(&self, taxpayers: &[&TaxpayerId]) -> Result<Vec<LoadResult>, StoreError> {
        let taxpayers: Vec<_> = taxpayers.iter().copied().copied().collect();
        let (store, at) = (&self.0.store, self.0.clock.now());
        let (mut recipients, mut next) = tokio::try_join!(
            webhooks::recipients(store, &taxpayers, at),
            delivery_queue::due_owned_by_each(store, &taxpayers, at, max_held(self.0.max_concurrent))
        )?;
        let found = |taxpayer: &TaxpayerId| {
            let recipient = recipients.remove(taxpayer)?;
            Some(DueWork { recipient, next: next.remove(taxpayer).unwrap_or_default().into(), at })
        };
        Ok(taxpayers.iter().map(found).map(Ok).collect())
    }
}
