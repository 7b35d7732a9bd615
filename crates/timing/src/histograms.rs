//! Histograms for the metrics page, each with suitable buckets. A clone shares the values of its original. Labels must
//! never contain data of customers, because each value of a label adds a series.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

/// One histogram for each set of labels.
pub type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Returns a histogram for durations, in seconds, of work inside the process and in the database.
pub fn for_work_durations() -> Histogram {
    Histogram::new([
        0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
        10.0,
    ])
}

/// Returns a histogram for durations, in seconds, of calls to other services.
pub fn for_call_durations() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    ])
}

/// Returns a histogram for the sizes of batches.
pub fn for_batch_sizes() -> Histogram {
    Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0])
}
