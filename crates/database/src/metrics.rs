//! Metrics of the database: the waits for a connection or for a turn to write, and the number of writes that share a
//! commit.

use prometheus_client::metrics::histogram::Histogram;
use timing::histograms;

/// Clones share their values.
#[derive(Debug, Clone)]
pub struct StoreMetrics {
    /// The time that a query waits for a connection.
    pub read_waits: Histogram,
    /// The time that a write transaction waits until it can start.
    pub write_waits: Histogram,
    /// The number of write transactions that share a commit. On PostgreSQL each has a commit of its own.
    pub group_sizes: Histogram,
    /// The number of commands that one transaction executes, as its caller counts them.
    pub transaction_commands: Histogram,
}

impl Default for StoreMetrics {
    fn default() -> Self {
        Self {
            read_waits: histograms::for_work(),
            write_waits: histograms::for_work(),
            group_sizes: histograms::for_sizes(),
            transaction_commands: histograms::for_sizes(),
        }
    }
}
