//! Helpers for all modules of the metrics page: the labels of a time series, and metrics that hold one value.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;

/// The names and values of the labels of one time series.
pub(super) type LabelPairs = Vec<(&'static str, String)>;

pub(super) fn gauge(value: i64) -> Gauge {
    let gauge = Gauge::default();
    gauge.set(value);
    gauge
}

pub(super) fn counter(value: u64) -> Counter {
    let counter = Counter::default();
    counter.inc_by(value);
    counter
}
