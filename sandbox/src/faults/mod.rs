//! Everything that can go wrong, on order.
//!
//! A fault comes from the control interface (`registry`) or from a word in an invoice number (`magic`); `draw` is
//! the chance behind a probability. What a fault does to a call is the gate's business, not decided here.

mod draw;
mod magic;
mod order;
mod registry;

pub(crate) use magic::{is_offline, is_rejected, magic};
pub use order::{FaultKind, FaultOrder};
pub(crate) use registry::{Faults, Moment};

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) kind: FaultKind,
    /// How late the answer is; 0 is at once.
    pub(crate) latency_ms: u64,
    pub(crate) retry_after_s: u64,
    /// Replaces the usual status of `server_error`, `busy` and `outage`.
    pub(crate) status: Option<u16>,
}

impl Effect {
    pub(crate) fn of(kind: FaultKind) -> Self {
        let latency_ms = if kind == FaultKind::Latency { 1000 } else { 0 };
        Self { kind, latency_ms, retry_after_s: 1, status: None }
    }
}
