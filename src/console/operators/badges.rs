//! The states that only operators see, each with the colour and the words that pages show.

use supervision::NodeState;

use crate::console::badges::Badge;
use crate::domain::breaker::BreakerCondition;
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
            NodeState::Unknown => ("warn", "Unknown"),
        };
        Self { class, text }
    }
}

impl From<BreakerCondition> for Badge {
    fn from(state: BreakerCondition) -> Self {
        let (class, text) = match state {
            BreakerCondition::Closed => ("ok", "Closed"),
            BreakerCondition::HalfOpen => ("warn", "Probing"),
            BreakerCondition::Open => ("bad", "Open"),
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
