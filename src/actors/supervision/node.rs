//! One actor's place in the tree: its name, state, restarts and pulse.
//!
//! Kept small, for there are tens of thousands. Clones are the same node. A node of a transient kind leaves
//! the tree when its actor stops; a failed one stays until its actor may start again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use serde::Serialize;

use super::quarantine::QuarantineRecord;
use super::reply::CommandId;
use super::tree::{ActorKind, Tree};
use super::watchdog::{BatchLoad, Heartbeat};

/// The text of a panic is cut to this many characters.
pub const PANIC_CHARS_MAX: usize = 200;

/// In order of gravity, lightest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Stopped,
    Running,
    Starting,
    /// At one batch for longer than the watchdog's first limit.
    Busy,
    /// Waiting after a panic.
    Restarting,
    /// At one batch for longer than the watchdog's second limit.
    Stuck,
    /// Gave up after too many panics.
    Failed,
}

#[derive(Debug, Clone)]
pub struct Node {
    tree: Tree,
    inner: Arc<NodeInner>,
}

#[derive(Debug)]
pub(super) struct NodeInner {
    pub(super) id: u64,
    pub(super) name: Box<str>,
    pub(super) kind: ActorKind,
    pub(super) shard: usize,
    pub(super) started_at: Timestamp,
    heartbeat: Heartbeat,
    condition: Mutex<NodeStatus>,
}

#[derive(Debug, Clone)]
struct NodeStatus {
    state: NodeState,
    restarts: u32,
    last_panic: Option<Box<str>>,
    /// Microseconds since the tree was created, once it gave up.
    failed_at: Option<u64>,
}

impl NodeInner {
    pub(super) fn new(id: u64, name: Box<str>, kind: ActorKind, shard: usize, started_at: Timestamp) -> Self {
        let condition =
            NodeStatus { state: NodeState::Starting, restarts: 0, last_panic: None, failed_at: None };
        let condition = Mutex::new(condition);
        Self { id, name, kind, shard, started_at, heartbeat: Heartbeat::default(), condition }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn heartbeat(&self) -> &Heartbeat {
        &self.heartbeat
    }

    pub(super) fn state(&self) -> NodeState {
        match (self.condition().state, self.heartbeat.level()) {
            (NodeState::Running, BatchLoad::Busy) => NodeState::Busy,
            (NodeState::Running, BatchLoad::Stuck) => NodeState::Stuck,
            (state, _) => state,
        }
    }

    pub(super) fn restarts(&self) -> u32 {
        self.condition().restarts
    }

    pub(super) fn last_panic(&self) -> Option<String> {
        self.condition().last_panic.as_deref().map(str::to_owned)
    }

    fn condition(&self) -> MutexGuard<'_, NodeStatus> {
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    pub(super) fn new(tree: Tree, inner: Arc<NodeInner>) -> Self {
        Self { tree, inner }
    }

    pub fn name(&self) -> &str {
        &self.inner.name
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    pub fn state(&self) -> NodeState {
        self.inner.state()
    }

    pub fn restarts(&self) -> u32 {
        self.inner.restarts()
    }

    pub fn last_panic(&self) -> Option<String> {
        self.inner.last_panic()
    }

    pub fn has_failed(&self) -> bool {
        self.state() == NodeState::Failed
    }

    /// When it gave up, in microseconds since the tree was created.
    pub(super) fn failed_at(&self) -> Option<u64> {
        self.inner.condition().failed_at
    }

    /// A batch begins. The watchdog counts from here.
    pub fn batch_started(&self) {
        self.inner.heartbeat.start(self.tree.moment(Instant::now()));
    }

    pub fn batch_finished(&self) {
        self.inner.heartbeat.finish();
    }

    /// Records a command that was put aside, with the panic that brought it there.
    pub fn quarantined(&self, reference: CommandId, command: &'static str) {
        tracing::error!(actor = self.name(), command, %reference, "command is quarantined");
        self.tree.quarantine().put(QuarantineRecord {
            reference,
            actor: self.name().to_owned(),
            command,
            at: self.tree.now().to_string(),
            panic: self.last_panic().unwrap_or_default(),
        });
    }

    /// Takes the node, and with it the failure it may stand for, out of the tree.
    pub fn forget(&self) {
        self.tree.forget(self.inner.id);
    }

    pub(super) fn runs(&self) {
        self.inner.condition().state = NodeState::Running;
    }

    pub(super) fn panicked(&self, text: &str) {
        self.inner.heartbeat.finish();
        let mut condition = self.inner.condition();
        condition.state = NodeState::Restarting;
        condition.last_panic = Some(text.chars().take(PANIC_CHARS_MAX).collect());
        drop(condition);
        self.tree.counters().panics.up();
        tracing::error!(actor = self.name(), panic = text, "actor panicked");
    }

    pub(super) fn restarts_soon(&self) {
        let mut condition = self.inner.condition();
        condition.restarts = condition.restarts.saturating_add(1);
        drop(condition);
        self.tree.counters().restarts.up();
    }

    pub(super) fn fails(&self, reason: &str) {
        self.inner.heartbeat.finish();
        let failed_at = self.tree.moment(Instant::now());
        let mut condition = self.inner.condition();
        condition.state = NodeState::Failed;
        condition.failed_at = Some(failed_at);
        drop(condition);
        self.tree.escalate(self.inner.id, format!("{} {}: {reason}", self.inner.kind.name(), self.name()));
    }

    /// Ends a node that has not failed.
    pub(super) fn stops(&self) {
        self.inner.heartbeat.finish();
        let mut condition = self.inner.condition();
        if condition.state == NodeState::Failed {
            return;
        }
        condition.state = NodeState::Stopped;
        drop(condition);
        if self.inner.kind.is_transient() {
            self.forget();
        }
    }
}
