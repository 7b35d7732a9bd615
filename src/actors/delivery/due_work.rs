//! Loads the due deliveries of endpoints, with one query for all endpoints that ask at the same time. Then decides how
//! many attempts an endpoint may run in a round and which of the loaded deliveries may still start.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use database::StoreError;
use jiff::Timestamp;
use webhook_client::SecretFault;

use crate::actors::delivery::attempt::DeliveryTarget;
use crate::actors::delivery::batches::BatchWork;
use crate::actors::delivery::deps::DeliveryDeps;
use crate::actors::delivery::in_flight::{DeliveriesInFlight, max_in_flight};
use crate::domain::events::delivery::Delivery;
use crate::domain::events::endpoint_health::{CircuitState, FailureStreak};
use crate::domain::events::event::Event;
use crate::domain::kernel::ids::EndpointKey;
use crate::store::webhooks;
use crate::store::webhooks::delivery_queue;

/// A delivery is started only within this time after it was loaded. After that all are loaded again, because the
/// endpoint may have changed, or a delivery may have been given up.
const LOADED_WORK_MAX_AGE: Duration = Duration::from_millis(100);

/// An endpoint and its due deliveries.
pub(super) struct DueWork {
    pub(super) recipient: webhooks::LoadedEndpoint,
    /// The due deliveries, including deliveries in flight. The delivery that has been due for the longest time is
    /// first. If an endpoint may get a probe and nothing is due, this is the delivery that is due next.
    pub(super) next: VecDeque<(Delivery, Event)>,
    /// The time at which the deliveries were queried.
    pub(super) at: Timestamp,
}

pub(super) struct DueWorkReader(pub(super) Arc<DeliveryDeps>);

impl BatchWork for DueWorkReader {
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
            webhooks::load_endpoints(store, &keys, at),
            delivery_queue::load_due_by_endpoint(
                store,
                &keys,
                at,
                max_in_flight(self.0.max_concurrent)
            )
        )?;
        let idle: Vec<_> = keys
            .iter()
            .copied()
            .filter(|key| !next.contains_key(key))
            .filter(|key| recipients.get(key).is_some_and(|to| awaits_probe(to, at)))
            .collect();
        if !idle.is_empty() {
            let probes =
                delivery_queue::load_due_by_endpoint(store, &idle, Timestamp::MAX, 1).await?;
            next.extend(probes);
        }
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

/// True if one delivery may be sent to this endpoint now, as a probe, even if none is due.
fn awaits_probe(recipient: &webhooks::LoadedEndpoint, at: Timestamp) -> bool {
    let streak = recipient.failure_streak.as_ref();
    // A replay queues deliveries that are due at once. One of them is the probe.
    recipient.endpoint.is_active
        && !recipient.is_replaying
        && streak.is_some_and(|streak| streak.circuit_state(at) == CircuitState::Probe)
}

/// An endpoint with its state, and its loaded deliveries that have not started yet.
pub(super) struct LoadedWork {
    pub(super) to: Arc<DeliveryTarget>,
    pub(super) failure_streak: Option<FailureStreak>,
    /// The number of attempts that may run concurrently.
    pub(super) slots: usize,
    pub(super) next: VecDeque<(Delivery, Event)>,
    /// True if all due deliveries were loaded, apart from those of large events, which are left out to save memory.
    /// Also true without slots, because then nothing may start. False if more deliveries may be due.
    pub(super) has_all_due: bool,
    /// The time at which the deliveries were queried.
    at: Timestamp,
    loaded_at: Instant,
}

impl LoadedWork {
    /// Sets the number of slots according to the circuit state, and removes loaded deliveries that are already in
    /// flight.
    pub(super) fn new(
        found: DueWork,
        deps: &DeliveryDeps,
        in_flight: &DeliveriesInFlight,
    ) -> Result<Self, SecretFault> {
        let DueWork {
            mut recipient,
            mut next,
            at,
        } = found;
        let failure_streak = recipient.failure_streak.take();
        let circuit_state = failure_streak
            .as_ref()
            .map_or(CircuitState::Closed, |streak| streak.circuit_state(at));
        let to = Arc::new(DeliveryTarget::try_from(recipient)?);
        let slots = match circuit_state {
            _ if !to.endpoint.is_active || deps.is_closing() => 0,
            CircuitState::Closed => deps.max_concurrent,
            CircuitState::Probe => 1,
            CircuitState::Parked(_) => 0,
        };
        let loaded_at = Instant::now();
        let has_all_due = slots == 0 || next.len() < max_in_flight(deps.max_concurrent);
        if slots == 0 {
            next.clear();
        } else {
            next.retain(|(delivery, _)| !in_flight.contains(delivery));
        }
        Ok(Self {
            to,
            failure_streak,
            slots,
            next,
            has_all_due,
            at,
            loaded_at,
        })
    }

    /// True if the endpoint's lane must name this delivery before an attempt at it starts, so that a crash of the
    /// process is counted for it: the delivery was in flight at an earlier crash, or it is not due yet. Otherwise a
    /// crash is counted for the deliveries that are due.
    pub(super) fn must_be_recorded(&self, delivery: &Delivery) -> bool {
        delivery.is_crash_suspect() || delivery.is_scheduled_after(self.at)
    }

    pub(super) fn must_be_reloaded(&self) -> bool {
        self.next.is_empty() || self.loaded_at.elapsed() > LOADED_WORK_MAX_AGE
    }
}
