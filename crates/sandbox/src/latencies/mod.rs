//! Latencies of calls without a fault, and limits of concurrent calls.
//!
//! A latency is random (`spread` has the distribution). Calls above the limit wait (`registry`), so they take longer.

mod order;
mod registry;
mod spread;

pub use order::{LatencyOrder, Percentiles, UniformLatency};
pub(crate) use registry::Latencies;
