//! Latencies of calls without a fault, and limits of concurrent calls.
//!
//! A latency is drawn from a distribution (`spread`) by the seed, as faults are. A limit of concurrent calls
//! makes the others wait, so that latency grows with load (`registry`).

mod order;
mod registry;
mod spread;

pub use order::{LatencyOrder, Percentiles, Uniform};
pub(crate) use registry::Latencies;
