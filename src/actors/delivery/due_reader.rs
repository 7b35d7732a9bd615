//! Loads endpoints and their due deliveries, with one query for all endpoints that ask at the same time.

use std::collections::VecDeque;
use std::sync::Arc;

use database::StoreError;
use jiff::Timestamp;

use crate::actors::delivery::batches::BatchWork;
use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::in_flight::max_in_flight;
use crate::domain::events::delivery::Delivery;
use crate::domain::events::event::Event;
use crate::domain::kernel::ids::EndpointKey;
use crate::store::webhooks;
use crate::store::webhooks::delivery_queue;

/// An endpoint and its due deliveries.
pub(super) struct DueWork {
    pub(super) recipient: webhooks::LoadedEndpoint,
    /// The due deliveries, including deliveries in flight. The delivery that has been due for the longest time is
    /// first.
    pub(super) next: VecDeque<(Delivery, Event)>,
    /// The time at which the deliveries were queried.
    pub(super) at: Timestamp,
}

pub(super) struct DueReader(pub(super) Arc<DeliveryDeps>);

impl BatchWork for DueReader {
    type Request = EndpointKey;
    /// `None` if there is no endpoint with this key.
    type Answer = Option<DueWork>;

    const NAME: &'static str = "due-delivery-reader";
    const COMMAND: &'static str = "load";
    const BATCH_MAX: usize = 128;

    async fn run(
        &self,
        keys: &[&EndpointKey],
    ) -> Result<Vec<Result<Option<DueWork>, StoreError>>, StoreError> {
        let keys: Vec<_> = keys.iter().copied().copied().collect();
        let store = &self.0.store;
        let at = self.0.clock.now();
        let (mut recipients, mut next) = tokio::try_join!(
            webhooks::recipients(store, &keys, at),
            delivery_queue::load_due_by_endpoint(
                store,
                &keys,
                at,
                max_in_flight(self.0.max_concurrent)
            )
        )?;
        let found = keys.iter().map(|key| {
            let recipient = recipients.remove(key)?;
            Some(DueWork {
                recipient,
                next: next.remove(key).unwrap_or_default().into(),
                at,
            })
        });
        Ok(found.map(Ok).collect())
    }
}
