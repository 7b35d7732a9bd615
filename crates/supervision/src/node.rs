//! One actor in the tree: its name, state, restarts and heartbeat.
//!
//! The node of a failed actor stays in the tree until the actor may start again. All clones of a `Node` refer to the
//! same node.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use secrecy::SecretString;
use serde::Serialize;
use timing::CommandId;

use super::quarantine::{QuarantineRecord, UnstoredCommand};
use super::tree::{NodeKind, Tree};
use super::watchdog::{BatchLoad, Heartbeat};

/// The text of a panic is cut to this number of characters.
const PANIC_CHARS_MAX: usize = 200;

/// The states are ordered by severity, the least severe first. The snapshot sorts actors by this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Stopped,
    Running,
    Starting,
    /// The current batch has run for longer than the watchdog's first limit.
    Busy,
    /// The actor panicked and waits for its restart.
    Restarting,
    /// The current batch has run for longer than the watchdog's second limit.
    Stuck,
    /// The actor panicked too often and does not restart by itself.
    Failed,
}

#[derive(Debug, Clone)]
pub struct Node {
    tree: Tree,
    inner: Arc<NodeInner>,
}

#[derive(Debug)]
pub(crate) struct NodeInner {
    pub(crate) id: u64,
    pub(crate) name: Box<str>,
    pub(crate) kind: NodeKind,
    pub(crate) shard: usize,
    pub(crate) started_at: Timestamp,
    heartbeat: Heartbeat,
    /// The number of commands in the actor's queue, including those of the batch in progress.
    depth: AtomicUsize,
    /// The time that the oldest command of the last batch waited, in microseconds.
    wait_us: AtomicU64,
    condition: Mutex<NodeStatus>,
}

#[derive(Debug, Clone)]
struct NodeStatus {
    state: NodeState,
    restarts: u32,
    last_panic: Option<Box<str>>,
    /// The time of the escalation, in microseconds since the tree was created. `None` if the actor has not escalated.
    failed_at: Option<u64>,
}

impl NodeInner {
    pub(crate) fn new(
        id: u64,
        name: Box<str>,
        kind: NodeKind,
        shard: usize,
        started_at: Timestamp,
    ) -> Self {
        let condition = NodeStatus {
            state: NodeState::Starting,
            restarts: 0,
            last_panic: None,
            failed_at: None,
        };
        let condition = Mutex::new(condition);
        Self {
            id,
            name,
            kind,
            shard,
            started_at,
            heartbeat: Heartbeat::default(),
            depth: AtomicUsize::new(0),
            wait_us: AtomicU64::new(0),
            condition,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn heartbeat(&self) -> &Heartbeat {
        &self.heartbeat
    }

    pub(crate) fn state(&self) -> NodeState {
        match (self.condition().state, self.heartbeat.level()) {
            (NodeState::Running, BatchLoad::Busy) => NodeState::Busy,
            (NodeState::Running, BatchLoad::Stuck) => NodeState::Stuck,
            (state, _) => state,
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    pub(crate) fn wait_us(&self) -> u64 {
        self.wait_us.load(Ordering::Relaxed)
    }

    pub(crate) fn restarts(&self) -> u32 {
        self.condition().restarts
    }

    pub(crate) fn last_panic(&self) -> Option<String> {
        self.condition().last_panic.as_deref().map(str::to_owned)
    }

    fn condition(&self) -> MutexGuard<'_, NodeStatus> {
        self.condition
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    pub(crate) fn new(tree: Tree, inner: Arc<NodeInner>) -> Self {
        Self { tree, inner }
    }

    pub(crate) fn name(&self) -> &str {
        &self.inner.name
    }

    pub(crate) fn kind(&self) -> NodeKind {
        self.inner.kind
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn state(&self) -> NodeState {
        self.inner.state()
    }

    #[cfg(test)]
    pub(crate) fn restarts(&self) -> u32 {
        self.inner.restarts()
    }

    pub(crate) fn last_panic(&self) -> Option<String> {
        self.inner.last_panic()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.state() == NodeState::Failed
    }

    /// Returns the time of the escalation in microseconds since the tree was created, or `None` without an escalation.
    pub(crate) fn failed_at(&self) -> Option<u64> {
        self.inner.condition().failed_at
    }

    /// Stores the number of commands in the actor's queue, to be shown to operators.
    pub fn record_depth(&self, depth: usize) {
        self.inner.depth.store(depth, Ordering::Relaxed);
    }

    /// Stores how long the oldest command of the batch that starts now has waited, to be shown to operators.
    pub fn record_wait(&self, waited: Duration) {
        let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        self.inner.wait_us.store(micros, Ordering::Relaxed);
    }

    /// Tells the watchdog that the actor starts a batch now.
    pub fn mark_batch_started(&self) {
        self.inner
            .heartbeat
            .start(self.tree.micros_at(Instant::now()));
    }

    pub fn mark_batch_finished(&self) {
        self.inner.heartbeat.finish();
    }

    /// Records the metrics of a batch of equal commands: how long each command had waited when the batch began, and how
    /// long the batch took.
    pub fn measure_batch(&self, command: &'static str, waits: &[Duration], took: Duration) {
        let metrics = &self.tree.counters().by_kind;
        metrics.record_batch(self.kind(), waits.len());
        for waited in waits {
            metrics.record_wait(self.kind(), command, *waited);
            metrics.record_duration(self.kind(), command, "done", took);
        }
    }

    /// Records that a command was quarantined, with the text of the actor's last panic. `contents` is what a replay
    /// needs, or `None` if the command cannot be replayed.
    pub(crate) fn record_quarantine(
        &self,
        reference: CommandId,
        command: &'static str,
        contents: Option<SecretString>,
    ) {
        tracing::error!(actor = self.name(), command, %reference, "command is quarantined");
        let at = self.tree.now();
        let record = QuarantineRecord {
            reference,
            actor: self.name().to_owned(),
            command,
            at: at.to_string(),
            panic: self.last_panic().unwrap_or_default(),
        };
        self.tree.quarantine().put(UnstoredCommand {
            record,
            kind: self.kind(),
            at,
            contents,
        });
    }

    /// Removes the node from the tree. If it had failed, its failure no longer makes the process unready.
    pub(crate) fn forget(&self) {
        self.tree.forget(self.inner.id);
    }

    pub(crate) fn mark_running(&self) {
        self.inner.condition().state = NodeState::Running;
    }

    pub(crate) fn record_panic(&self, text: &str) {
        self.inner.heartbeat.finish();
        let mut condition = self.inner.condition();
        condition.state = NodeState::Restarting;
        condition.last_panic = Some(text.chars().take(PANIC_CHARS_MAX).collect());
        drop(condition);
        self.tree.counters().panics.up();
        tracing::error!(actor = self.name(), panic = text, "actor panicked");
    }

    pub(crate) fn record_restart(&self) {
        let mut condition = self.inner.condition();
        condition.restarts = condition.restarts.saturating_add(1);
        drop(condition);
        self.tree.counters().restarts.up();
        self.tree.counters().by_kind.record_restart(self.inner.kind);
    }

    pub(crate) fn mark_failed(&self, reason: &str) {
        self.inner.heartbeat.finish();
        let failed_at = self.tree.micros_at(Instant::now());
        let mut condition = self.inner.condition();
        condition.state = NodeState::Failed;
        condition.failed_at = Some(failed_at);
        drop(condition);
        self.tree.escalate(
            self.inner.id,
            format!("{} {}: {reason}", self.inner.kind.name(), self.name()),
        );
    }

    /// Marks the node as stopped, unless it has failed. A node of a transient kind is also removed from the tree.
    pub(crate) fn mark_stopped(&self) {
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
