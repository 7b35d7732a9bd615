//! Metrics of the trace spans of this process: how many were exported to the collector, and how many were dropped.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::http::metrics::families::{LabelPairs, counter};
use crate::telemetry::traces;

pub(super) fn register(registry: &mut Registry) {
    let counts = traces::span_counts();
    let help = "Spans that the collector of traces has taken";
    registry.register("trace_spans_exported", help, counter(counts.exported));
    let dropped = Family::<LabelPairs, Counter>::default();
    for (reason, count) in [
        ("queue_full", counts.dropped_by_queue),
        ("collector", counts.dropped_by_collector),
    ] {
        let labels = vec![("reason", reason.to_owned())];
        dropped.get_or_create(&labels).inc_by(count);
    }
    let help = "Spans that were dropped: the queue was full, or the collector took none";
    registry.register("trace_spans_dropped", help, dropped);
}
