//! The kind of an actor, and the state that it is in.

use serde::{Deserialize, Serialize};

/// The kind of an actor. The tree groups its actors by kind, and the kind's name is a label in the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct NodeKind {
    name: &'static str,
    #[serde(skip)]
    is_transient: bool,
}

impl NodeKind {
    /// A kind whose actors are started on demand and stop when idle. A stopped actor leaves the tree.
    pub const fn transient(name: &'static str) -> Self {
        Self {
            name,
            is_transient: true,
        }
    }

    /// A kind whose actors run as long as the process. A stopped actor stays in the tree.
    pub const fn permanent(name: &'static str) -> Self {
        Self {
            name,
            is_transient: false,
        }
    }

    pub fn name(self) -> &'static str {
        self.name
    }

    pub(crate) fn is_transient(self) -> bool {
        self.is_transient
    }
}

/// The state of an actor. The variants are ordered by severity, the least severe first, because lists of actors are
/// sorted by it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Stopped,
    Running,
    Starting,
    /// The current batch has run for longer than the watchdog's `busy_after`.
    Busy,
    /// The actor panicked and waits for its restart.
    Restarting,
    /// The current batch has run for longer than the watchdog's `stuck_after`.
    Stuck,
    /// The actor panicked too often and does not restart by itself.
    Failed,
    /// A state that only another version of this program knows. No actor of this process has it.
    #[default]
    #[serde(other)]
    Unknown,
}
