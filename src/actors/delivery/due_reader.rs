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
use crate::domain::kernel::ids::TaxpayerId;
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
    type Request = TaxpayerId;
    /// `None` if the taxpayer has no endpoint.
    type Answer = Option<DueWork>;

    const NAME: &'static str = "due-delivery-reader";
    const COMMAND: &'static str = "load";
    const BATCH_MAX: usize = 128;

    async fn run(
        &self,
        taxpayers: &[&TaxpayerId],
    ) -> Result<Vec<Result<Option<DueWork>, StoreError>>, StoreError> {
        let taxpayers: Vec<_> = taxpayers.iter().copied().copied().collect();
        let store = &self.0.store;
        let at = self.0.clock.now();
        let (mut recipients, mut next) = tokio::try_join!(
            webhooks::recipients(store, &taxpayers, at),
            delivery_queue::load_due_by_taxpayer(
                store,
                &taxpayers,
                at,
                max_in_flight(self.0.max_concurrent)
            )
        )?;
        let found = taxpayers.iter().map(|taxpayer| {
            let recipient = recipients.remove(taxpayer)?;
            Some(DueWork {
                recipient,
                next: next.remove(taxpayer).unwrap_or_default().into(),
                at,
            })
        });
        Ok(found.map(Ok).collect())
    }
}
