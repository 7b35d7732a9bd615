//! The notifications that are sent inside this process after a commit: to the dispatchers of runs and deliveries, to
//! the worker of an endpoint, and to callers that wait for a run. If a notification is lost, the work is found by the
//! next poll: it is delayed but never lost.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::actors::dispatch::DirectDispatch;
use crate::actors::keyed_notify::KeyedNotify;
use crate::domain::kernel::ids::{RunId, TaxpayerId};

#[derive(Debug, Clone, Default)]
pub struct Notifiers {
    pub runs: Arc<Notify>,
    pub endpoints: Arc<Notify>,
    /// Hands endpoint lanes that a commit has leased to the dispatcher of deliveries.
    pub direct: DirectDispatch,
    pub run_changes: KeyedNotify<RunId>,
    /// Wakes the worker that delivers to the endpoint of this taxpayer.
    pub endpoint_work: KeyedNotify<TaxpayerId>,
}
