//! Latencies of calls without a fault, and limits of concurrent calls.
//!
//! Each latency is drawn at random from a distribution (`spread`). It depends on the same seed as the faults. When a
//! limit of concurrent calls is reached, further calls wait, so that the latency grows with the load (`registry`).

mod order;
mod registry;
mod spread;

pub use order::{LatencyOrder, Percentiles, Uniform};
pub(crate) use registry::Latencies;
