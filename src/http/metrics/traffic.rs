//! Counters of HTTP requests by route, method and class of status, and histograms of their durations.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use supervision::Counter as Count;

use crate::http::metrics::families::counter;
use crate::http::metrics::history::RequestHistory;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: &'static str,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: &'static str,
    route: &'static str,
}

/// The requests since the start of the process. Clones share the same counters.
#[derive(Debug, Clone)]
pub struct Traffic {
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram, fn() -> Histogram>,
    history: Arc<RequestHistory>,
    broken_answers: Arc<Count>,
    failed_authentications: Arc<Count>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            durations: Family::new_with_constructor(duration_histogram),
            history: Arc::default(),
            broken_answers: Arc::default(),
            failed_authentications: Arc::default(),
        }
    }
}

/// Returns an empty histogram. The bounds of its buckets, in seconds, go from a cached read to the longest wait for the
/// authority.
fn duration_histogram() -> Histogram {
    Histogram::new([
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    ])
}

impl Traffic {
    pub(crate) fn count_request(
        &self,
        method: &Method,
        route: &'static str,
        status: StatusCode,
        duration: Duration,
    ) {
        self.history
            .count_request(status.is_server_error(), duration);
        let method = method_label(method);
        self.durations
            .get_or_create(&RouteLabels { method, route })
            .observe(duration.as_secs_f64());
        self.requests
            .get_or_create(&RequestLabels {
                method,
                route,
                status: status_class(status),
            })
            .inc();
    }

    /// Counts an answer with status 500 that a defect of this service has caused.
    pub(crate) fn count_broken_answer(&self) {
        self.broken_answers.increment();
    }

    pub(crate) fn count_failed_authentication(&self) {
        self.failed_authentications.increment();
    }

    /// Returns the number of answers with status 500 that a defect of this service has caused.
    pub(crate) fn broken_answers(&self) -> u64 {
        self.broken_answers.get()
    }

    /// Returns the number of keys and passwords that were wrong.
    pub(crate) fn failed_authentications(&self) -> u64 {
        self.failed_authentications.get()
    }

    /// Returns the requests of the last minutes.
    pub(crate) fn history(&self) -> &RequestHistory {
        &self.history
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("http_requests", "Requests answered", self.requests.clone());
        let broken = counter(self.broken_answers.get());
        let help = "Requests answered with 500 because of a defect";
        registry.register("http_requests_broken", help, broken);
        let failed = counter(self.failed_authentications.get());
        registry.register(
            "authentications_failed",
            "Keys and passwords that were wrong",
            failed,
        );
        registry.register(
            "http_request_duration_seconds",
            "Time to the answer",
            self.durations.clone(),
        );
    }
}

/// Returns the label of a method. Callers can invent methods, so all unknown methods share one label.
fn method_label(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    KNOWN
        .into_iter()
        .find(|name| *name == method.as_str())
        .unwrap_or("other")
}

fn status_class(status: StatusCode) -> &'static str {
    ["1xx", "2xx", "3xx", "4xx", "5xx"][usize::from((status.as_u16() / 100).clamp(1, 5) - 1)]
}
