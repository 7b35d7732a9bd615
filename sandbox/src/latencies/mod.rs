//! How long calls take when nothing goes wrong, and how many of them are served at once, on order.
//!
//! A spread says how long (`spread`), drawn by the seed as faults are; a bound on what is served at once makes the
//! others wait for their turn, so that answers get later as the load grows (`registry`).

mod order;
mod registry;
mod spread;

pub use order::{LatencyOrder, Percentiles, Uniform};
pub(crate) use registry::Latencies;
