//! Metrics of the request log: the requests that it dropped, by their outcome.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::actors::request_log::RequestLog;
use crate::http::metrics::families::LabelPairs;

pub(super) fn register(registry: &mut Registry, log: &RequestLog) {
    let dropped = Family::<LabelPairs, Counter>::default();
    for (outcome, count) in log.dropped_counts() {
        let labels = vec![("outcome", outcome.to_owned())];
        dropped.get_or_create(&labels).inc_by(count);
    }
    let help = "Requests that the database did not take fast enough, and failures beyond the rate of their account";
    registry.register("request_log_dropped", help, dropped);
}
