//! Who is woken after a commit in this process: the dispatchers of runs and of deliveries, who serves an endpoint
//! already, and the callers that wait for a run. A lost wake-up costs a poll's delay, never the work.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::actors::dispatch::Handover;
use crate::actors::waiters::Waiters;
use crate::domain::kernel::ids::{RunId, TaxpayerId};

#[derive(Debug, Clone, Default)]
pub struct Wakers {
    pub runs: Arc<Notify>,
    pub endpoints: Arc<Notify>,
    /// Where endpoints are brought that a commit has taken over.
    pub pool: Handover,
    pub waiters: Waiters<RunId>,
    /// Who serves an endpoint, by its taxpayer.
    pub couriers: Waiters<TaxpayerId>,
}
