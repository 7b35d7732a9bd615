//! The tree as operators read it (`GET /ops/supervision`): groups with their counts, and the nodes worth a look.
//!
//! Of each group at most `nodes_max` nodes are listed, gravest first; the counts are of all. Plain values that
//! serialise; no handle into the running tree.

use std::collections::BTreeMap;

use serde::Serialize;

use super::node::{Leaf, State};
use super::observe;
use super::quarantine::Record;
use super::tree::{Kind, Tree};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    pub ready: bool,
    /// Why it is not.
    pub reason: Option<String>,
    pub groups: Vec<Group>,
    pub counters: observe::Snapshot,
    pub quarantine: Vec<Record>,
}

/// The actors of one kind on one arbiter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    pub kind: Kind,
    pub shard: usize,
    /// How many are in each state.
    pub states: BTreeMap<State, usize>,
    pub nodes: Vec<Actor>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Actor {
    pub name: String,
    pub state: State,
    pub restarts: u32,
    pub last_panic: Option<String>,
    /// RFC 3339, UTC.
    pub started_at: String,
}

impl From<&Leaf> for Actor {
    fn from(leaf: &Leaf) -> Self {
        Self {
            name: leaf.name().to_owned(),
            state: leaf.state(),
            restarts: leaf.restarts(),
            last_panic: leaf.last_panic(),
            started_at: leaf.started_at.to_string(),
        }
    }
}

impl Tree {
    /// The tree now, with up to `nodes_max` nodes a group.
    pub fn snapshot(&self, nodes_max: usize) -> Snapshot {
        let mut groups: BTreeMap<(Kind, usize), Group> = BTreeMap::new();
        self.each(|leaf| {
            let (kind, shard) = (leaf.kind, leaf.shard);
            let group = groups.entry((kind, shard)).or_insert_with(|| Group::new(kind, shard));
            group.add(leaf.into(), nodes_max);
        });
        let reason = self.readiness().err();
        Snapshot {
            ready: reason.is_none(),
            reason,
            groups: groups.into_values().map(|group| group.cut(nodes_max)).collect(),
            counters: self.counters().snapshot(),
            quarantine: self.quarantine().records(),
        }
    }
}

impl Group {
    fn new(kind: Kind, shard: usize) -> Self {
        Self { kind, shard, states: BTreeMap::new(), nodes: Vec::new() }
    }

    /// Cuts whenever twice too many are held, so that a snapshot of very many stays small.
    fn add(&mut self, actor: Actor, nodes_max: usize) {
        *self.states.entry(actor.state).or_default() += 1;
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
            (b.state, b.restarts).cmp(&(a.state, a.restarts)).then_with(|| a.name.cmp(&b.name))
        });
        self.nodes.truncate(nodes_max);
    }
}
