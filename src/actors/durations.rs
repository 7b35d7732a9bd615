//! Measures how long deliveries and signatures take, for the metrics page.

use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::histogram::Histogram;
use supervision::Counter;
use timing::histograms::{self, Histograms};
use timing::recent_count::RecentCount;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct AttemptLabels {
    outcome: &'static str,
}

#[derive(Debug)]
pub struct WorkDurations {
    /// The durations of delivery attempts in seconds, by outcome.
    pub attempts: Histograms<AttemptLabels>,
    /// The time from the submission of an invoice to its signature, in seconds.
    pub signatures: Histogram,
    /// Counts the delivery attempts that reached the receiver. `receivers_unreachable` counts those that did not.
    pub receivers_reached: Counter,
    pub receivers_unreachable: Counter,
    /// All delivery attempts, whatever their outcome.
    pub recent_attempts: RecentCount,
}

impl Default for WorkDurations {
    fn default() -> Self {
        let attempts = Histograms::new_with_constructor(histograms::for_call_durations);
        Self {
            attempts,
            signatures: histogram_for_runs(),
            receivers_reached: Counter::default(),
            receivers_unreachable: Counter::default(),
            recent_attempts: RecentCount::default(),
        }
    }
}

/// Returns a histogram for durations, in seconds, of runs (operations for one IRN at the authority). A run may wait for
/// days.
fn histogram_for_runs() -> Histogram {
    Histogram::new([
        0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 7_200.0, 21_600.0,
        86_400.0, 259_200.0,
    ])
}

impl WorkDurations {
    pub fn record_attempt(&self, outcome: &'static str, duration: Duration) {
        self.recent_attempts.increment();
        self.attempts
            .get_or_create(&AttemptLabels { outcome })
            .observe(duration.as_secs_f64());
        match outcome {
            "connect" | "dns" => self.receivers_unreachable.increment(),
            // The address is not allowed, so nobody was called.
            "forbidden" => {}
            _ => self.receivers_reached.increment(),
        }
    }

    pub fn record_signature(&self, submitted_at: Timestamp, now: Timestamp) {
        self.signatures
            .observe(now.duration_since(submitted_at).as_secs_f64().max(0.0));
    }
}
