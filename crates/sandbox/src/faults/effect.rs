//! The effect of a fault on one call.

use super::FaultKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) kind: FaultKind,
    /// The delay of the answer in milliseconds; 0 means no delay.
    pub(crate) latency_ms: u64,
    pub(crate) retry_after_s: u64,
    /// Replaces the usual HTTP status of the faults `server_error`, `busy` and `outage`.
    pub(crate) status: Option<u16>,
}

impl Effect {
    pub(crate) fn from_kind(kind: FaultKind) -> Self {
        let latency_ms = if kind == FaultKind::Latency { 1000 } else { 0 };
        Self {
            kind,
            latency_ms,
            retry_after_s: 1,
            status: None,
        }
    }

    /// Returns the seconds for the header Retry-After; `None` unless the fault is `throttled`.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        (self.kind == FaultKind::Throttled).then_some(self.retry_after_s)
    }
}
