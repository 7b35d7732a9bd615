//! The requests with which a test sets latencies: how long an operation takes to answer, and how many of its calls run
//! at a time.

use serde::{Deserialize, Serialize};

use super::spread::Spread;
use crate::faults::parse_operation;
use crate::route::Operation;

/// The largest latency that can be set, in milliseconds.
const LATENCY_MS_MAX: u64 = 3_600_000;
const AT_ONCE_MAX: u32 = 100_000;

/// A uniform distribution of latencies from `min` to `max`, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UniformLatency {
    pub min: u64,
    pub max: u64,
}

/// Latencies in milliseconds: half of the calls take at most `p50`, 90 % at most `p90`, 99 % at most `p99`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Percentiles {
    /// The smallest latency in milliseconds; 0 by default.
    pub min: Option<u64>,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
}

/// The body of `POST /sandbox/latencies`. Without an `operation`, or with `"*"`, the latency applies to all operations
/// that have no latency of their own; these operations share one limit of concurrent calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyOrder {
    pub operation: Option<String>,
    pub fixed_ms: Option<u64>,
    pub uniform_ms: Option<UniformLatency>,
    pub percentiles_ms: Option<Percentiles>,
    /// The largest number of concurrent calls; further calls wait in order of arrival.
    pub at_once: Option<u32>,
}

/// The parsed values of a latency that has passed all checks.
#[derive(Debug)]
pub(super) struct CheckedLatency {
    pub(super) operation: Option<Operation>,
    pub(super) spread: Spread,
}

impl LatencyOrder {
    /// Limits the latency to calls of this operation.
    #[must_use]
    pub fn on(mut self, operation: Operation) -> Self {
        self.operation = Some(operation.name().to_owned());
        self
    }

    pub(super) fn check(&self) -> Result<CheckedLatency, String> {
        let operation = parse_operation(self.operation.as_deref())?;
        if self
            .at_once
            .is_some_and(|calls| !(1..=AT_ONCE_MAX).contains(&calls))
        {
            return Err(format!("at_once must be from 1 to {AT_ONCE_MAX}"));
        }
        Ok(CheckedLatency {
            operation,
            spread: self.spread()?,
        })
    }

    fn spread(&self) -> Result<Spread, String> {
        let spread = match (self.fixed_ms, self.uniform_ms, self.percentiles_ms) {
            (None, None, None) if self.at_once.is_some() => Spread::constant(0),
            (Some(ms), None, None) => Spread::constant(ms),
            (None, Some(UniformLatency { min, max }), None) => Spread::uniform(min, max),
            (None, None, Some(table)) => Spread::percentiles(&table),
            _ => {
                return Err(
                    "one of fixed_ms, uniform_ms and percentiles_ms, at_once, or both".into(),
                );
            }
        };
        if !spread.is_ascending() {
            return Err("times must not go down from one percentile to the next".into());
        }
        if spread.longest_ms() > LATENCY_MS_MAX {
            return Err(format!("times must be from 0 to {LATENCY_MS_MAX} ms"));
        }
        Ok(spread)
    }
}
