//! The tree of supervised actors: a root, one group per kind and shard, and the actors.
//!
//! The tree also holds the shared counters, the worst figures of the last hour, the last panics, the quarantine and
//! the clock. As long as a failed actor is in the tree, the process is not ready.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dashmap::DashMap;
use jiff::Timestamp;
use timing::clock::SharedClock;

use super::counters::Counters;
use super::node::{Node, NodeInner};
use super::node_state::{NodeKind, NodeState};
use super::panic_log::PanicLog;
use super::quarantine::Quarantine;
use super::recent::{ActorMeasures, WorstActors};
use super::watchdog::BatchLoad;

/// The number of actors of one kind that are processing a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BusyActors {
    pub all: usize,
    /// The number of actors in `all` whose batch has run for longer than the watchdog's `stuck_after`.
    pub stuck: usize,
}

/// All actors of a tree in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeTotals {
    pub actors: usize,
    /// The number of commands in the queues of all actors.
    pub queued: usize,
    pub failed: usize,
    pub stuck: usize,
}

/// The supervision tree. All clones refer to the same tree.
#[derive(Clone)]
pub struct Tree(Arc<TreeInner>);

struct TreeInner {
    clock: SharedClock,
    kinds: &'static [NodeKind],
    started_at: Instant,
    ids: AtomicU64,
    nodes: DashMap<u64, Arc<NodeInner>>,
    failures: Mutex<BTreeMap<u64, String>>,
    recent: Mutex<WorstActors>,
    panics: Mutex<PanicLog>,
    counters: Arc<Counters>,
    quarantine: Quarantine,
}

impl Tree {
    /// Creates a tree for actors of these kinds. Operators see the kinds in this order. The metrics show each kind with
    /// zero restarts from the start.
    pub fn new(clock: SharedClock, kinds: &'static [NodeKind]) -> Self {
        let counters = Counters::default();
        for kind in kinds {
            counters.by_kind.show_zero_restarts(*kind);
        }
        Self(Arc::new(TreeInner {
            clock,
            kinds,
            started_at: Instant::now(),
            ids: AtomicU64::new(1),
            nodes: DashMap::new(),
            failures: Mutex::default(),
            recent: Mutex::default(),
            panics: Mutex::default(),
            counters: Arc::new(counters),
            quarantine: Quarantine::default(),
        }))
    }

    /// Adds a node in the state `Starting`.
    pub fn add_node(&self, kind: NodeKind, shard: usize, name: impl Into<Box<str>>) -> Node {
        let id = self.0.ids.fetch_add(1, Ordering::Relaxed);
        let inner = Arc::new(NodeInner::new(id, name.into(), kind, shard, self.now()));
        self.0.nodes.insert(id, Arc::clone(&inner));
        Node::new(self.clone(), inner)
    }

    pub fn counters(&self) -> &Arc<Counters> {
        &self.0.counters
    }

    pub fn quarantine(&self) -> &Quarantine {
        &self.0.quarantine
    }

    pub fn node_count(&self) -> usize {
        self.0.nodes.len()
    }

    /// Returns an error with the reason if an actor has escalated.
    pub fn readiness(&self) -> Result<(), String> {
        let failures = self.lock_failures();
        match (failures.len(), failures.values().next()) {
            (_, None) => Ok(()),
            (1, Some(reason)) => Err(reason.clone()),
            (count, Some(reason)) => Err(format!("{reason} (and {} more)", count - 1)),
        }
    }

    /// Counts the actors of a kind that are processing a batch, and those that the watchdog's last scan found stuck.
    pub fn busy_actors(&self, kind: NodeKind) -> BusyActors {
        let mut found = BusyActors::default();
        self.for_each_node(|inner| {
            if inner.kind == kind && inner.heartbeat().running_since().is_some() {
                found.all += 1;
                found.stuck += usize::from(inner.heartbeat().batch_load() == BatchLoad::Stuck);
            }
        });
        found
    }

    /// Counts all actors, without copying any of them.
    pub fn totals(&self) -> TreeTotals {
        let mut totals = TreeTotals::default();
        self.for_each_node(|inner| {
            totals.actors += 1;
            totals.queued += inner.depth();
            match inner.state() {
                NodeState::Failed => totals.failed += 1,
                NodeState::Stuck => totals.stuck += 1,
                _ => {}
            }
        });
        totals
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Returns the position of a kind in the order that was given to `new`.
    pub(crate) fn kind_position(&self, kind: NodeKind) -> usize {
        let kinds = self.0.kinds;
        kinds
            .iter()
            .position(|known| *known == kind)
            .unwrap_or(kinds.len())
    }

    /// Converts `at` to microseconds since the tree was created.
    pub(crate) fn micros_at(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.0.started_at).as_micros())
            .unwrap_or(u64::MAX)
    }

    pub(crate) fn for_each_node(&self, mut inspect: impl FnMut(&Arc<NodeInner>)) {
        for inner in &self.0.nodes {
            inspect(&inner);
        }
    }

    /// Records what an actor did, for the figures of the last hour.
    pub(crate) fn record_measured(&self, node: &NodeInner, moment: u64, measured: ActorMeasures) {
        self.lock_worst_actors()
            .record(node.kind.name(), node.name(), moment, measured);
    }

    /// Counts a panic, keeps its cause, and records the figures of the batch that the panic ended (`measured`).
    pub(crate) fn record_panic(
        &self,
        node: &NodeInner,
        moment: u64,
        cause: &str,
        measured: ActorMeasures,
    ) {
        self.0.counters.panics.increment();
        let kind = node.kind.name();
        self.lock_panic_log()
            .record(kind, node.name(), self.now(), cause);
        self.record_measured(node, moment, measured);
    }

    pub(crate) fn lock_worst_actors(&self) -> MutexGuard<'_, WorstActors> {
        lock(&self.0.recent)
    }

    pub(crate) fn lock_panic_log(&self) -> MutexGuard<'_, PanicLog> {
        lock(&self.0.panics)
    }

    pub(crate) fn escalate(&self, id: u64, reason: String) {
        self.0.counters.escalations.increment();
        tracing::error!(reason, "actor escalated; the process is not ready");
        self.lock_failures().insert(id, reason);
    }

    pub(crate) fn forget(&self, id: u64) {
        self.0.nodes.remove(&id);
        self.lock_failures().remove(&id);
    }

    fn lock_failures(&self) -> MutexGuard<'_, BTreeMap<u64, String>> {
        lock(&self.0.failures)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("nodes", &self.node_count())
            .finish_non_exhaustive()
    }
}
