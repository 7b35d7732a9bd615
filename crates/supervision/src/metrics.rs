//! Metrics of actors by kind: the waits and durations of commands, the sizes of batches, and restarts.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use timing::histograms::{self, Histograms};

use super::node_state::NodeKind;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CommandLabels {
    kind: &'static str,
    command: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabels {
    kind: &'static str,
    command: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindLabels {
    kind: &'static str,
}

#[derive(Debug)]
pub struct ActorMetrics {
    /// The time from the admission of a command to the start of its batch.
    pub waits: Histograms<CommandLabels>,
    /// The time that the batch of a command took, by the outcome of the command.
    pub durations: Histograms<OutcomeLabels>,
    /// The number of commands in a batch.
    pub batch_sizes: Histograms<KindLabels>,
    /// Restarts after a panic.
    pub restarts: Family<KindLabels, Counter>,
}

impl Default for ActorMetrics {
    fn default() -> Self {
        let waits = Histograms::new_with_constructor(histograms::for_work_durations);
        let durations = Histograms::new_with_constructor(histograms::for_work_durations);
        let batch_sizes = Histograms::new_with_constructor(histograms::for_batch_sizes);
        Self {
            waits,
            durations,
            batch_sizes,
            restarts: Family::default(),
        }
    }
}

impl ActorMetrics {
    /// Makes the metrics page show zero restarts of this kind before the first restart.
    pub(crate) fn show_zero_restarts(&self, kind: NodeKind) {
        drop(
            self.restarts
                .get_or_create(&KindLabels { kind: kind.name() }),
        );
    }

    pub(crate) fn record_wait(&self, kind: NodeKind, command: &'static str, waited: Duration) {
        let labels = CommandLabels {
            kind: kind.name(),
            command,
        };
        self.waits
            .get_or_create(&labels)
            .observe(waited.as_secs_f64());
    }

    pub(crate) fn record_duration(
        &self,
        kind: NodeKind,
        command: &'static str,
        outcome: &'static str,
        took: Duration,
    ) {
        let labels = OutcomeLabels {
            kind: kind.name(),
            command,
            outcome,
        };
        self.durations
            .get_or_create(&labels)
            .observe(took.as_secs_f64());
    }

    pub(crate) fn record_batch(&self, kind: NodeKind, commands: usize) {
        let size = u32::try_from(commands).unwrap_or(u32::MAX);
        self.batch_sizes
            .get_or_create(&KindLabels { kind: kind.name() })
            .observe(f64::from(size));
    }

    pub(crate) fn record_restart(&self, kind: NodeKind) {
        self.restarts
            .get_or_create(&KindLabels { kind: kind.name() })
            .inc();
    }
}
