//! A breaker of the authority's operations, as this process sees it.

use serde::Serialize;

use crate::authority::BreakerView;
use crate::domain::object::precise;

#[derive(Debug, Serialize)]
pub(crate) struct Breaker {
    operation: &'static str,
    state: &'static str,
    /// When it last opened or closed; null where it never did.
    since: Option<String>,
    /// Calls within the last 30 s, and those of them that failed.
    calls: u32,
    failures: u32,
    next_probe_at: Option<String>,
    openings: u64,
}

impl From<&BreakerView> for Breaker {
    fn from(view: &BreakerView) -> Self {
        Self {
            operation: view.operation.name(),
            state: view.state.name(),
            since: view.since.map(precise),
            calls: view.calls,
            failures: view.failures,
            next_probe_at: view.next_probe_at.map(precise),
            openings: view.openings,
        }
    }
}
