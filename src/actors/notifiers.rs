//! The notifications sent after a commit in this process: to the dispatchers of runs and deliveries, to the worker of an
//! endpoint and to callers that wait for a run. A lost notification costs the delay of a poll, never the work.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::actors::dispatch::DirectDispatch;
use crate::actors::keyed_notify::KeyedNotify;
use crate::domain::kernel::ids::{RunId, TaxpayerId};

#[derive(Debug, Clone, Default)]
pub struct Notifiers {
    pub runs: Arc<Notify>,
    pub endpoints: Arc<Notify>,
    /// Receives endpoint lanes that a commit has leased.
    pub direct: DirectDispatch,
    pub run_changes: KeyedNotify<RunId>,
    /// Wakes the worker that holds an endpoint, by taxpayer.
    pub endpoint_work: KeyedNotify<TaxpayerId>,
}
