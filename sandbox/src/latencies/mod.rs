//! Latencies of calls without a fault, and limits of concurrent calls.
//!
//! A latency is drawn at random from a distribution (`spread`). When the limit of concurrent calls is reached, further
//! calls wait (`registry`), so the latency grows with the load.

mod order;
mod registry;
mod spread;

pub use order::{LatencyOrder, Percentiles, Uniform};
pub(crate) use registry::Latencies;
