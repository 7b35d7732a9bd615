//! The tree of supervised actors: a root, one group per kind and arbiter, and the actors.
//!
//! The tree also holds the shared counters, the quarantine and the clock. While a failed actor is in the tree, the
//! process is not ready.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use dashmap::DashMap;
use jiff::Timestamp;
use serde::Serialize;

use super::counters::Counters;
use super::node::{Node, NodeInner};
use super::quarantine::Quarantine;
use super::watchdog::BatchLoad;
use crate::domain::kernel::clock::SharedClock;

/// The kind of an actor. The tree groups its actors by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    Taxpayer,
    Pipeline,
    Webhook,
    Reference,
    Inbound,
    Janitor,
}

impl NodeKind {
    pub const ALL: [Self; 6] = [
        Self::Taxpayer,
        Self::Pipeline,
        Self::Webhook,
        Self::Reference,
        Self::Inbound,
        Self::Janitor,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Taxpayer => "taxpayer",
            Self::Pipeline => "pipeline",
            Self::Webhook => "webhook",
            Self::Reference => "reference",
            Self::Inbound => "inbound",
            Self::Janitor => "janitor",
        }
    }

    /// True for actors that are started on demand and stop when idle. A stopped actor leaves the tree.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Taxpayer | Self::Pipeline | Self::Webhook)
    }
}

/// The number of actors of one kind that are processing a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BusyActors {
    pub all: usize,
    /// The number of actors in `all` whose batch has run for longer than the watchdog's second limit.
    pub stuck: usize,
}

/// The supervision tree. All clones refer to the same tree.
#[derive(Clone)]
pub struct Tree(Arc<TreeInner>);

struct TreeInner {
    clock: SharedClock,
    started_at: Instant,
    ids: AtomicU64,
    nodes: DashMap<u64, Arc<NodeInner>>,
    failures: Mutex<BTreeMap<u64, String>>,
    counters: Arc<Counters>,
    quarantine: Quarantine,
}

impl Tree {
    pub fn new(clock: SharedClock) -> Self {
        Self(Arc::new(TreeInner {
            clock,
            started_at: Instant::now(),
            ids: AtomicU64::new(1),
            nodes: DashMap::new(),
            failures: Mutex::default(),
            counters: Arc::default(),
            quarantine: Quarantine::default(),
        }))
    }

    /// Adds a node in the state `Starting`.
    pub fn node(&self, kind: NodeKind, shard: usize, name: impl Into<Box<str>>) -> Node {
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

    pub fn count(&self) -> usize {
        self.0.nodes.len()
    }

    /// Returns an error with the reason if an actor has escalated.
    pub fn readiness(&self) -> Result<(), String> {
        let failures = self.failures();
        match (failures.len(), failures.values().next()) {
            (_, None) => Ok(()),
            (1, Some(reason)) => Err(reason.clone()),
            (count, Some(reason)) => Err(format!("{reason} (and {} more)", count - 1)),
        }
    }

    /// Counts the taxpayer actors that are processing a batch, and those that the watchdog's last scan found stuck.
    pub fn busy_taxpayers(&self) -> BusyActors {
        let mut found = BusyActors::default();
        self.for_each_node(|inner| {
            if inner.kind == NodeKind::Taxpayer && inner.heartbeat().is_running() {
                found.all += 1;
                found.stuck += usize::from(inner.heartbeat().level() == BatchLoad::Stuck);
            }
        });
        found
    }

    pub(super) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// Converts `at` to microseconds since the tree was created.
    pub(super) fn micros_at(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.0.started_at).as_micros())
            .unwrap_or(u64::MAX)
    }

    pub(super) fn for_each_node(&self, mut inspect: impl FnMut(&NodeInner)) {
        for inner in &self.0.nodes {
            inspect(&inner);
        }
    }

    pub(super) fn escalate(&self, id: u64, reason: String) {
        self.0.counters.escalations.up();
        tracing::error!(reason, "actor escalated; the process is not ready");
        self.failures().insert(id, reason);
    }

    pub(super) fn forget(&self, id: u64) {
        self.0.nodes.remove(&id);
        self.failures().remove(&id);
    }

    fn failures(&self) -> MutexGuard<'_, BTreeMap<u64, String>> {
        self.0
            .failures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree")
            .field("nodes", &self.count())
            .finish_non_exhaustive()
    }
}
