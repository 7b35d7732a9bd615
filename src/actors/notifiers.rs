//! The channels on which a commit notifies waiting tasks of this process. If one is lost, the next poll finds the work.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::actors::dispatch::DirectDispatch;
use crate::actors::keyed_notify::KeyedNotify;
use crate::actors::run_changes::RunChanges;
use crate::domain::kernel::ids::EndpointKey;

#[derive(Debug, Clone, Default)]
pub struct Notifiers {
    pub runs: Arc<Notify>,
    pub endpoints: Arc<Notify>,
    /// Sends the endpoint lanes that a commit has leased to the dispatcher of deliveries.
    pub direct: DirectDispatch,
    /// Sends the run lanes that a commit has leased to the dispatcher of runs.
    pub direct_runs: DirectDispatch,
    pub run_changes: RunChanges,
    /// Wakes the worker that delivers to this endpoint.
    pub endpoint_work: KeyedNotify<EndpointKey>,
}
