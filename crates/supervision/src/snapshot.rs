//! A snapshot of the tree for operators: how many actors are in each state, and the actors of each group whose state is
//! the worst.

use std::collections::BTreeMap;

use serde::Serialize;

use super::counters::CounterValues;
use super::node::{NodeInner, NodeState};
use super::quarantine::QuarantineRecord;
use super::tree::{NodeKind, Tree};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TreeSnapshot {
    pub ready: bool,
    /// The reason why the process is not ready. `None` if it is ready.
    pub reason: Option<String>,
    pub groups: Vec<ActorGroup>,
    pub counters: CounterValues,
    pub quarantine: Vec<QuarantineRecord>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActorGroup {
    pub kind: NodeKind,
    pub shard: usize,
    /// The number of actors in each state.
    pub states: BTreeMap<NodeState, usize>,
    /// The number of commands in the queues of all actors of the group.
    pub mailbox_depth: usize,
    pub nodes: Vec<ActorView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActorView {
    pub name: String,
    pub state: NodeState,
    pub restarts: u32,
    /// The number of commands in the actor's queue, including those of the batch in progress.
    pub mailbox_depth: usize,
    /// The time that the oldest command of the last batch waited for its start, in microseconds.
    pub wait_us: u64,
    pub last_panic: Option<String>,
    pub started_at: String,
}

impl From<&NodeInner> for ActorView {
    fn from(inner: &NodeInner) -> Self {
        Self {
            name: inner.name().to_owned(),
            state: inner.state(),
            restarts: inner.restarts(),
            mailbox_depth: inner.depth(),
            wait_us: inner.wait_us(),
            last_panic: inner.last_panic(),
            started_at: inner.started_at.to_string(),
        }
    }
}

impl Tree {
    /// Takes a snapshot of the tree with up to `nodes_max` actors per group.
    pub fn snapshot(&self, nodes_max: usize) -> TreeSnapshot {
        // The kind is part of the key, because all kinds that the tree does not know have one rank.
        let mut groups: BTreeMap<(usize, NodeKind, usize), ActorGroup> = BTreeMap::new();
        self.for_each_node(|inner| {
            let kind = inner.kind;
            let shard = inner.shard;
            let group = groups
                .entry((self.rank(kind), kind, shard))
                .or_insert_with(|| ActorGroup::new(kind, shard));
            group.add(inner.into(), nodes_max);
        });
        let reason = self.readiness().err();
        TreeSnapshot {
            ready: reason.is_none(),
            reason,
            groups: groups
                .into_values()
                .map(|group| group.cut(nodes_max))
                .collect(),
            counters: self.counters().snapshot(),
            quarantine: self.quarantine().records(),
        }
    }
}

impl ActorGroup {
    fn new(kind: NodeKind, shard: usize) -> Self {
        Self {
            kind,
            shard,
            states: BTreeMap::new(),
            mailbox_depth: 0,
            nodes: Vec::new(),
        }
    }

    /// Counts an actor and adds it to the list. A list longer than twice the limit is cut to the actors in the worst
    /// states, to limit memory.
    fn add(&mut self, actor: ActorView, nodes_max: usize) {
        *self.states.entry(actor.state).or_default() += 1;
        self.mailbox_depth += actor.mailbox_depth;
        self.nodes.push(actor);
        if self.nodes.len() > nodes_max.saturating_mul(2) {
            self.sort_and_cut(nodes_max);
        }
    }

    fn cut(mut self, nodes_max: usize) -> Self {
        self.sort_and_cut(nodes_max);
        self
    }

    fn sort_and_cut(&mut self, nodes_max: usize) {
        self.nodes.sort_unstable_by(|a, b| {
            (b.state, b.restarts)
                .cmp(&(a.state, a.restarts))
                .then_with(|| a.name.cmp(&b.name))
        });
        self.nodes.truncate(nodes_max);
    }
}
