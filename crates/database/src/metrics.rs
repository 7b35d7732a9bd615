//! Metrics of the database: the waits for a connection or for a turn to write, and the number of writes that share a
//! commit.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use timing::histograms;

/// A query that waits longer than this for a connection is slow: the pool is exhausted.
const SLOW_AFTER: Duration = Duration::from_secs(1);

/// The waits of queries for a connection. Clones share their values.
#[derive(Debug, Clone)]
pub struct ReadWaits {
    pub durations: Histogram,
    /// The number of waits that were longer than a second, whether or not they ended with a connection.
    pub slow: Counter,
}

impl Default for ReadWaits {
    fn default() -> Self {
        Self {
            durations: histograms::for_work_durations(),
            slow: Counter::default(),
        }
    }
}

impl ReadWaits {
    pub(crate) fn record(&self, wait: Duration) {
        self.durations.observe(wait.as_secs_f64());
        if wait > SLOW_AFTER {
            self.slow.inc();
        }
    }
}

/// The metrics of one database. Clones share their values.
#[derive(Debug, Clone)]
pub struct DatabaseMetrics {
    pub read_waits: ReadWaits,
    /// The time that a write transaction waits until it can start.
    pub write_waits: Histogram,
    /// The number of write transactions that share a commit. On PostgreSQL each has a commit of its own.
    pub group_sizes: Histogram,
    /// The number of commands that share one transaction. This crate knows no commands: the code that executes them
    /// records the number.
    pub transaction_commands: Histogram,
}

impl Default for DatabaseMetrics {
    fn default() -> Self {
        Self {
            read_waits: ReadWaits::default(),
            write_waits: histograms::for_work_durations(),
            group_sizes: histograms::for_batch_sizes(),
            transaction_commands: histograms::for_batch_sizes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_waits_of_more_than_a_second_are_slow() {
        let waits = ReadWaits::default();
        for millis in [0, 999, 1_000, 1_001, 5_000] {
            waits.record(Duration::from_millis(millis));
        }
        assert_eq!(waits.slow.get(), 2);
    }
}
