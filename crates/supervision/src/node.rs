//! One actor in the tree: its name, state, restarts and heartbeat, its batch in progress, and its waiting commands.
//!
//! A node is small, because there is one for each taxpayer in memory. The tree keeps the history, and only that of some
//! actors (`recent`, `panic_log`). All times are in microseconds since the tree was created. The node of a failed actor
//! stays in the tree until the actor may start again. All clones of a `Node` refer to the same node.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use secrecy::SecretString;
use timing::CommandId;

use super::node_state::{NodeKind, NodeState};
use super::quarantine::{QuarantineRecord, UnstoredCommand};
use super::recent::ActorMeasures;
use super::tree::Tree;
use super::watchdog::{BatchLoad, Heartbeat};

/// The text of a panic is cut to this number of characters.
const PANIC_CHARS_MAX: usize = 200;

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
    /// The time at which the oldest command was sent that no batch has taken yet; 0 if none waits.
    waiting_since: AtomicU64,
    /// The time that the oldest command of the last batch waited for the start of the batch.
    wait_us: AtomicU64,
    /// The time that the last batch took; 0 before the end of the first one.
    last_batch_us: AtomicU64,
    status: Mutex<NodeStatus>,
}

#[derive(Debug)]
pub(crate) struct NodeStatus {
    pub(crate) state: NodeState,
    pub(crate) restarts: u32,
    /// The commands of the batch in progress, or of the last one.
    pub(crate) commands: u32,
    /// The name of the first of these commands; empty before the first batch.
    pub(crate) command: &'static str,
    pub(crate) last_panic: Option<Box<str>>,
    /// The time at which a restarting actor restarts, or at which a failed one escalated. Has no meaning in any other
    /// state.
    moment: u64,
}

impl NodeStatus {
    pub(crate) fn restarts_at(&self) -> Option<u64> {
        (self.state == NodeState::Restarting).then_some(self.moment)
    }

    pub(crate) fn failed_at(&self) -> Option<u64> {
        (self.state == NodeState::Failed).then_some(self.moment)
    }
}

impl NodeInner {
    pub(crate) fn new(
        id: u64,
        name: Box<str>,
        kind: NodeKind,
        shard: usize,
        started_at: Timestamp,
    ) -> Self {
        let status = NodeStatus {
            state: NodeState::Starting,
            restarts: 0,
            commands: 0,
            command: "",
            last_panic: None,
            moment: 0,
        };
        Self {
            id,
            name,
            kind,
            shard,
            started_at,
            heartbeat: Heartbeat::default(),
            depth: AtomicUsize::new(0),
            waiting_since: AtomicU64::new(0),
            wait_us: AtomicU64::new(0),
            last_batch_us: AtomicU64::new(0),
            status: Mutex::new(status),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn heartbeat(&self) -> &Heartbeat {
        &self.heartbeat
    }

    pub(crate) fn state(&self) -> NodeState {
        match (self.lock_status().state, self.heartbeat.batch_load()) {
            (NodeState::Running, BatchLoad::Busy) => NodeState::Busy,
            (NodeState::Running, BatchLoad::Stuck) => NodeState::Stuck,
            (state, _) => state,
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    /// Returns how long the oldest waiting command has waited at `moment`; 0 if none waits.
    pub(crate) fn oldest_wait_us(&self, moment: u64) -> u64 {
        match self.waiting_since.load(Ordering::Relaxed) {
            0 => 0,
            since => moment.saturating_sub(since).max(1),
        }
    }

    pub(crate) fn wait_us(&self) -> u64 {
        self.wait_us.load(Ordering::Relaxed)
    }

    pub(crate) fn last_batch_us(&self) -> Option<u64> {
        Some(self.last_batch_us.load(Ordering::Relaxed)).filter(|took| *took > 0)
    }

    pub(crate) fn lock_status(&self) -> MutexGuard<'_, NodeStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.inner.lock_status().restarts
    }

    pub(crate) fn last_panic(&self) -> Option<String> {
        self.inner
            .lock_status()
            .last_panic
            .as_deref()
            .map(str::to_owned)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.state() == NodeState::Failed
    }

    /// Returns the time of the escalation in microseconds since the tree was created, or `None` without an escalation.
    pub(crate) fn failed_at(&self) -> Option<u64> {
        self.inner.lock_status().failed_at()
    }

    /// Stores for operators the number of commands in the actor's queue, and the time at which the oldest command was
    /// sent that no batch has taken yet.
    pub fn record_queue(&self, depth: usize, waiting_since: Option<Instant>) {
        let since = waiting_since.map_or(0, |at| self.tree.micros_at(at).max(1));
        self.inner.depth.store(depth, Ordering::Relaxed);
        self.inner.waiting_since.store(since, Ordering::Relaxed);
    }

    /// Tells the watchdog and the operators that the actor starts a batch now. `commands` is its number of commands,
    /// `command` the name of the first one, and `waited` the wait of the oldest one. Ends the previous batch, if it
    /// still runs.
    pub fn mark_batch_started(&self, command: &'static str, commands: usize, waited: Duration) {
        self.mark_batch_finished();
        let mut status = self.inner.lock_status();
        status.command = command;
        status.commands = u32::try_from(commands).unwrap_or(u32::MAX);
        drop(status);
        self.inner.wait_us.store(micros(waited), Ordering::Relaxed);
        self.inner
            .heartbeat
            .start(self.tree.micros_at(Instant::now()));
    }

    /// Ends the batch in progress, if there is one.
    pub fn mark_batch_finished(&self) {
        let moment = self.tree.micros_at(Instant::now());
        if let Some(measured) = self.end_batch(moment) {
            self.tree.record_measured(&self.inner, moment, measured);
        }
    }

    /// Ends the batch in progress and returns its figures; `None` if there is none.
    fn end_batch(&self, moment: u64) -> Option<ActorMeasures> {
        let kind = self.kind().name();
        let since = self.inner.heartbeat.finish(kind, self.name())?;
        let took = moment.saturating_sub(since).max(1);
        self.inner.last_batch_us.store(took, Ordering::Relaxed);
        Some(ActorMeasures {
            wait_us: self.inner.wait_us(),
            handle_us: took,
            depth: u64::try_from(self.inner.depth()).unwrap_or(u64::MAX),
            ..ActorMeasures::default()
        })
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
            command: command.to_owned(),
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
        self.inner.lock_status().state = NodeState::Running;
    }

    pub(crate) fn record_panic(&self, text: &str) {
        let moment = self.tree.micros_at(Instant::now());
        let measured = ActorMeasures {
            panics: 1,
            ..self.end_batch(moment).unwrap_or_default()
        };
        let cause: Box<str> = text.chars().take(PANIC_CHARS_MAX).collect();
        self.tree
            .record_panic(&self.inner, moment, &cause, measured);
        let mut status = self.inner.lock_status();
        status.state = NodeState::Restarting;
        status.moment = moment;
        status.last_panic = Some(cause);
        drop(status);
        tracing::error!(actor = self.name(), panic = text, "actor panicked");
    }

    /// Records that the actor recovered from its panic and will restart after `wait`.
    pub(crate) fn record_restart(&self, wait: Duration) {
        let moment = self.tree.micros_at(Instant::now());
        let mut status = self.inner.lock_status();
        status.restarts = status.restarts.saturating_add(1);
        status.moment = moment.saturating_add(micros(wait));
        drop(status);
        self.tree.counters().restarts.increment();
        self.tree.counters().by_kind.record_restart(self.inner.kind);
        let measured = ActorMeasures {
            restarts: 1,
            ..ActorMeasures::default()
        };
        self.tree.record_measured(&self.inner, moment, measured);
    }

    pub(crate) fn mark_failed(&self, reason: &str) {
        self.mark_batch_finished();
        let moment = self.tree.micros_at(Instant::now());
        let mut status = self.inner.lock_status();
        status.state = NodeState::Failed;
        status.moment = moment;
        drop(status);
        self.tree.escalate(
            self.inner.id,
            format!("{} {}: {reason}", self.inner.kind.name(), self.name()),
        );
    }

    /// Marks the node as stopped, unless it has failed. A node of a transient kind is also removed from the tree.
    pub(crate) fn mark_stopped(&self) {
        self.mark_batch_finished();
        let mut status = self.inner.lock_status();
        if status.state == NodeState::Failed {
            return;
        }
        status.state = NodeState::Stopped;
        drop(status);
        if self.inner.kind.is_transient() {
            self.forget();
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most bytes that the node of an actor may occupy before the actor has done anything. A process may have
    /// 50,000 nodes.
    const NODE_BYTES_MAX: usize = 184;

    #[test]
    fn a_node_is_small() {
        let bytes = size_of::<NodeInner>();
        assert!(bytes <= NODE_BYTES_MAX, "{bytes}");
    }
}
