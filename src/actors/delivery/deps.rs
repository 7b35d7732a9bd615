//! The settings and handles that all parts of the delivery share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use timing::clock::SharedClock;
use webhook_client::{GuardedClient, RetrySchedule};

use crate::actors::delivery::token_cache::TokenCache;
use crate::actors::dispatch::IsolationTurns;
use crate::actors::durations::WorkDurations;
use crate::actors::incidents::Incidents;
use crate::actors::keyed_notify::KeyedNotify;
use crate::actors::taxpayer::handle::TaxpayerHandle;
use crate::domain::events::endpoint_health::CircuitPolicy;
use crate::domain::kernel::ids::EndpointKey;
use crate::store::Store;

pub struct DeliveryDeps {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub client: GuardedClient,
    pub tokens: TokenCache,
    pub schedule: RetrySchedule,
    pub circuit: CircuitPolicy,
    /// The maximum number of concurrent attempts for one endpoint.
    pub max_concurrent: usize,
    pub wakeups: KeyedNotify<EndpointKey>,
    /// Hands out the turn that a delivery must hold to run alone (`dispatch::isolation`). All endpoints of this process
    /// share it.
    pub turns: IsolationTurns,
    /// True during shutdown: attempts in flight are finished, and no new attempt starts.
    pub is_closing: AtomicBool,
    /// True if the service was started with `--paused`: then it sends no webhook.
    pub is_paused: bool,
    pub clock: SharedClock,
    pub incidents: Arc<Incidents>,
    pub durations: Arc<WorkDurations>,
}

impl DeliveryDeps {
    /// Begins the shutdown: from now on no new attempt starts.
    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }
}
