//! The circuit breaker and the concurrency limit of one authority operation, as this process sees them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::authority::{BreakerView, CallerAccount, HeldCallers, LimitView};
use crate::domain::invoice::invoice_view::precise;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Breaker {
    operation: &'static str,
    state: &'static str,
    /// The taxpayers whose calls the breaker holds back, if it holds back only some; null if it holds back nobody or
    /// everybody.
    held_taxpayers: Option<Vec<i64>>,
    /// Time of the last change between open and closed; null if it never changed.
    since: Option<String>,
    /// Calls within the last 30 s; `failures` counts those that failed.
    calls: u32,
    failures: u32,
    next_probe_at: Option<String>,
    openings: u64,
    /// Maximum number of concurrent calls; `in_flight` counts the running calls and `waiting` the queued ones.
    limit: u32,
    in_flight: u32,
    waiting: usize,
    /// End of the period in which the authority asked for no calls of this kind; null if it did not ask.
    held_until: Option<String>,
}

impl From<(&BreakerView, &LimitView)> for Breaker {
    fn from((view, limit): (&BreakerView, &LimitView)) -> Self {
        Self {
            operation: view.operation.name(),
            state: view.state.name(),
            held_taxpayers: held_taxpayers(view),
            since: view.since.map(precise),
            calls: view.calls,
            failures: view.failures,
            next_probe_at: view.next_probe_at.map(precise),
            openings: view.openings,
            limit: limit.limit,
            in_flight: limit.in_flight,
            waiting: limit.waiting,
            held_until: limit.held_until.map(precise),
        }
    }
}

fn held_taxpayers(view: &BreakerView) -> Option<Vec<i64>> {
    let HeldCallers::Accounts(accounts) = &view.held else { return None };
    let taxpayers = accounts.iter().filter_map(|account| match account {
        CallerAccount::Taxpayer(id) => Some(id.0),
        CallerAccount::Service | CallerAccount::Integrator(_) => None,
    });
    Some(taxpayers.collect())
}
