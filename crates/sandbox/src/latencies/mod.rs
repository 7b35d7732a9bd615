//! Latencies of calls without a fault, and limits of concurrent calls.
//!
//! A latency is random (`spread` has the distribution). Calls above the limit wait (`registry`), so they take longer.

mod registry;
mod request;
mod spread;

pub(crate) use registry::Latencies;
pub use request::{LatencyOrder, Percentiles, UniformLatency};
