//! The states that only operators see, each with the colour and the words that pages show.

use authority_client::BreakerState;
use supervision::NodeState;

use crate::console::badges::Badge;
use crate::domain::reconciliation::day::ReconciliationState;

impl From<NodeState> for Badge {
    fn from(state: NodeState) -> Self {
        let (class, text) = match state {
            NodeState::Stopped => ("idle", "Stopped"),
            NodeState::Running => ("ok", "Running"),
            NodeState::Starting => ("info", "Starting"),
            NodeState::Busy => ("wait", "Busy"),
            NodeState::Restarting => ("warn", "Restarting"),
            NodeState::Stuck => ("bad", "Stuck"),
            NodeState::Failed => ("bad", "Failed"),
        };
        Self { class, text }
    }
}

impl From<BreakerState> for Badge {
    fn from(state: BreakerState) -> Self {
        let (class, text) = match state {
            BreakerState::Closed => ("ok", "Closed"),
            BreakerState::HalfOpen => ("warn", "Probing"),
            BreakerState::Open => ("bad", "Open"),
        };
        Self { class, text }
    }
}

impl From<ReconciliationState> for Badge {
    fn from(state: ReconciliationState) -> Self {
        let (class, text) = match state {
            ReconciliationState::Queued => ("wait", "Queued"),
            ReconciliationState::Running => ("info", "Running"),
            ReconciliationState::Interrupted => ("warn", "Interrupted"),
            ReconciliationState::Done => ("ok", "Done"),
            ReconciliationState::Failed => ("bad", "Failed"),
        };
        Self { class, text }
    }
}
