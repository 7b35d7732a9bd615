//! Latencies of calls without a fault, and limits of concurrent calls.
//!
//! A latency is drawn from a distribution (`spread`) by the seed, as faults are. When a limit of concurrent calls is
//! reached, further calls wait, so that the latency grows with the load (`registry`).

mod order;
mod registry;
mod spread;

pub use order::{LatencyOrder, Percentiles, Uniform};
pub(crate) use registry::Latencies;
