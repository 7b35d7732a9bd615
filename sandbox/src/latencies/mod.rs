//! Latencies of calls without a fault, and limits of concurrent calls.
//!
//! A latency is random, with a given distribution (`spread`). When the limit of concurrent calls is reached, further
//! calls wait (`registry`), so a call takes longer under load.

mod order;
mod registry;
mod spread;

pub use order::{LatencyOrder, Percentiles, Uniform};
pub(crate) use registry::Latencies;
