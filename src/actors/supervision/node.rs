//! One actor's place in the tree: its name, state, restarts and pulse.
//!
//! Kept small, for there are tens of thousands. Clones are the same node. A node of a transient kind leaves
//! the tree when its actor stops; a failed one stays until its actor may start again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use serde::Serialize;

use super::quarantine::Record;
use super::reply::CommandId;
use super::tree::{Kind, Tree};
use super::watchdog::{Beat, Level};

/// The text of a panic is cut to this many characters.
pub const PANIC_CHARS_MAX: usize = 200;

/// In order of gravity, lightest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
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
    leaf: Arc<Leaf>,
}

#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) id: u64,
    pub(super) name: Box<str>,
    pub(super) kind: Kind,
    pub(super) shard: usize,
    pub(super) started_at: Timestamp,
    beat: Beat,
    condition: Mutex<Condition>,
}

#[derive(Debug, Clone)]
struct Condition {
    state: State,
    restarts: u32,
    last_panic: Option<Box<str>>,
    /// Microseconds since the tree was planted, once it gave up.
    failed_at: Option<u64>,
}

impl Leaf {
    pub(super) fn new(id: u64, name: Box<str>, kind: Kind, shard: usize, started_at: Timestamp) -> Self {
        let condition = Condition { state: State::Starting, restarts: 0, last_panic: None, failed_at: None };
        let condition = Mutex::new(condition);
        Self { id, name, kind, shard, started_at, beat: Beat::default(), condition }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn beat(&self) -> &Beat {
        &self.beat
    }

    pub(super) fn state(&self) -> State {
        match (self.condition().state, self.beat.level()) {
            (State::Running, Level::Busy) => State::Busy,
            (State::Running, Level::Stuck) => State::Stuck,
            (state, _) => state,
        }
    }

    pub(super) fn restarts(&self) -> u32 {
        self.condition().restarts
    }

    pub(super) fn last_panic(&self) -> Option<String> {
        self.condition().last_panic.as_deref().map(str::to_owned)
    }

    fn condition(&self) -> MutexGuard<'_, Condition> {
        self.condition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    pub(super) fn new(tree: Tree, leaf: Arc<Leaf>) -> Self {
        Self { tree, leaf }
    }

    pub fn name(&self) -> &str {
        &self.leaf.name
    }

    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    pub fn state(&self) -> State {
        self.leaf.state()
    }

    pub fn restarts(&self) -> u32 {
        self.leaf.restarts()
    }

    pub fn last_panic(&self) -> Option<String> {
        self.leaf.last_panic()
    }

    pub fn has_failed(&self) -> bool {
        self.state() == State::Failed
    }

    /// When it gave up, in microseconds since the tree was planted.
    pub(super) fn failed_at(&self) -> Option<u64> {
        self.leaf.condition().failed_at
    }

    /// A batch begins. The watchdog counts from here.
    pub fn batch_started(&self) {
        self.leaf.beat.start(self.tree.moment(Instant::now()));
    }

    pub fn batch_finished(&self) {
        self.leaf.beat.finish();
    }

    /// Records a command that was put aside, with the panic that brought it there.
    pub fn quarantined(&self, reference: CommandId, command: &'static str) {
        tracing::error!(actor = self.name(), command, %reference, "command is quarantined");
        self.tree.quarantine().put(Record {
            reference,
            actor: self.name().to_owned(),
            command,
            at: self.tree.now().to_string(),
            panic: self.last_panic().unwrap_or_default(),
        });
    }

    /// Takes the node, and with it the failure it may stand for, out of the tree.
    pub fn forget(&self) {
        self.tree.forget(self.leaf.id);
    }

    pub(super) fn runs(&self) {
        self.leaf.condition().state = State::Running;
    }

    pub(super) fn panicked(&self, text: &str) {
        self.leaf.beat.finish();
        let mut condition = self.leaf.condition();
        condition.state = State::Restarting;
        condition.last_panic = Some(text.chars().take(PANIC_CHARS_MAX).collect());
        drop(condition);
        self.tree.counters().panics.up();
        tracing::error!(actor = self.name(), panic = text, "actor panicked");
    }

    pub(super) fn restarts_soon(&self) {
        let mut condition = self.leaf.condition();
        condition.restarts = condition.restarts.saturating_add(1);
        drop(condition);
        self.tree.counters().restarts.up();
    }

    pub(super) fn fails(&self, reason: &str) {
        self.leaf.beat.finish();
        let failed_at = self.tree.moment(Instant::now());
        let mut condition = self.leaf.condition();
        condition.state = State::Failed;
        condition.failed_at = Some(failed_at);
        drop(condition);
        self.tree.escalate(self.leaf.id, format!("{} {}: {reason}", self.leaf.kind.name(), self.name()));
    }

    /// Ends a node that has not failed.
    pub(super) fn stops(&self) {
        self.leaf.beat.finish();
        let mut condition = self.leaf.condition();
        if condition.state == State::Failed {
            return;
        }
        condition.state = State::Stopped;
        drop(condition);
        if self.leaf.kind.is_transient() {
            self.forget();
        }
    }
}
