//! The circuit breaker and the concurrency limit of one operation of the authority, as this process sees them.

use authority_client::{BreakerView, HeldCallers, LimitView};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::invoice::invoice_view::precise_time;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Breaker {
    operation: &'static str,
    state: &'static str,
    /// True if an operator has stopped the calls.
    is_tripped: bool,
    /// If the breaker holds back only some callers, the taxpayers among them; null if it holds back nobody or
    /// everybody.
    held_taxpayers: Option<Vec<i64>>,
    /// Time at which the breaker last opened or closed; null if it never opened.
    since: Option<String>,
    /// Number of calls within the last 30 s. `failures` is the number of these calls that failed.
    calls: u32,
    failures: u32,
    next_probe_at: Option<String>,
    openings: u64,
    /// Maximum number of concurrent calls now. `lasting_limit` is the maximum outside of the short times in which it is
    /// reduced to measure the answer time. `in_flight` is the number of running calls, `waiting` the number of calls
    /// that wait for a running call to end.
    limit: u32,
    lasting_limit: u32,
    in_flight: u32,
    waiting: usize,
    /// If the authority has asked for a pause in the calls of this operation, the end of the pause; null otherwise.
    held_until: Option<String>,
}

impl From<(&BreakerView, &LimitView)> for Breaker {
    fn from((view, limit): (&BreakerView, &LimitView)) -> Self {
        Self {
            operation: view.operation.name(),
            state: view.state.name(),
            is_tripped: view.is_tripped,
            held_taxpayers: held_taxpayers(view),
            since: view.since.map(precise_time),
            calls: view.calls,
            failures: view.failures,
            next_probe_at: view.next_probe_at.map(precise_time),
            openings: view.openings,
            limit: limit.limit,
            lasting_limit: limit.lasting_limit,
            in_flight: limit.in_flight,
            waiting: limit.waiting,
            held_until: limit.held_until.map(precise_time),
        }
    }
}

fn held_taxpayers(view: &BreakerView) -> Option<Vec<i64>> {
    let HeldCallers::Accounts(accounts) = &view.held else {
        return None;
    };
    Some(
        accounts
            .iter()
            .filter_map(|account| account.taxpayer())
            .collect(),
    )
}
