//! Takes a snapshot of the tree for operators: the number of actors in each state, the actors of each group with the
//! most trouble, and the first actors by each ranking.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::node::NodeInner;
use super::node_state::{NodeKind, NodeState};
use super::panic_log::PanicLog;
use super::ranking::{ActorTrouble, leading_actors};
use super::recent::{ActorMeasures, KEPT_BY_MEASURE, Windows, WindowsByName};
use super::snapshot_format::{ActorFigures, ActorGroup, BatchFigures, TreeSnapshot, WindowFigures};
use super::tree::Tree;

/// The time of a snapshot on two clocks: that of the tree, and the wall clock.
#[derive(Clone, Copy)]
struct Moment {
    /// In microseconds since the tree was created.
    micros: u64,
    wall: Timestamp,
}

impl Moment {
    /// Returns the time of day of another moment, exact to a millisecond.
    fn wall_time_at(self, micros: u64) -> Timestamp {
        let at = if micros <= self.micros {
            self.wall
                .checked_sub(whole_milliseconds(self.micros - micros))
        } else {
            self.wall
                .checked_add(whole_milliseconds(micros - self.micros))
        };
        let at = at.unwrap_or(self.wall);
        Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
    }
}

/// An actor in memory that may be listed. Its figures are computed only if it is listed.
struct ListCandidate {
    trouble: ActorTrouble,
    inner: Arc<NodeInner>,
    windows: Windows,
}

struct CountedGroup {
    counted: ActorGroup,
    worst: Vec<ListCandidate>,
}

/// Rounds down to whole milliseconds.
fn whole_milliseconds(micros: u64) -> Duration {
    Duration::from_millis(micros / 1_000)
}

impl Tree {
    /// Takes a snapshot of the tree with up to `actors_max` actors of each group. It also has that many actors of each
    /// kind by each ranking, if the tree still remembers them.
    pub fn snapshot(&self, actors_max: usize) -> TreeSnapshot {
        self.snapshot_at(Instant::now(), actors_max)
    }

    pub(crate) fn snapshot_at(&self, now: Instant, actors_max: usize) -> TreeSnapshot {
        let moment = Moment {
            micros: self.micros_at(now),
            wall: self.now(),
        };
        let mut recent = if actors_max == 0 {
            WindowsByName::new()
        } else {
            self.lock_worst_actors().windows(moment.micros)
        };
        // The key contains the kind in addition to its rank, because all kinds that the tree does not know have the
        // same rank.
        let mut groups: BTreeMap<(usize, NodeKind, usize), CountedGroup> = BTreeMap::new();
        let mut top = Vec::new();
        self.for_each_node(|inner| {
            let candidate = ListCandidate::new(inner, &mut recent, moment.micros);
            let key = (self.kind_position(inner.kind), inner.kind, inner.shard);
            let group = groups
                .entry(key)
                .or_insert_with(|| CountedGroup::new(inner.kind, inner.shard));
            group.count_actor(&candidate.trouble);
            if actors_max == 0 {
                return;
            }
            if !candidate.trouble.is_none() || candidate.windows != Windows::default() {
                top.push(candidate.figures(moment));
            }
            group.add(candidate, actors_max);
        });
        top.extend(stopped_actors(recent));
        let panics = self.lock_panic_log();
        let mut top = leading_actors(top, actors_max.min(KEPT_BY_MEASURE));
        for actor in &mut top {
            add_panics(actor, &panics);
        }
        let groups = groups.into_values();
        let groups = groups.map(|group| group.into_figures(moment, actors_max, &panics));
        let groups = groups.collect();
        drop(panics);
        let reason = self.readiness().err();
        TreeSnapshot {
            taken_at: moment.wall,
            ready: reason.is_none(),
            reason,
            groups,
            top,
            counters: self.counters().snapshot(),
            quarantine: self.quarantine().records(),
        }
    }
}

impl ListCandidate {
    /// Takes the actor's windows out of `recent`, so that in the end only those of stopped actors are left there.
    /// Adds the batch in progress and the waiting commands to each window.
    fn new(inner: &Arc<NodeInner>, recent: &mut WindowsByName, moment: u64) -> Self {
        let recorded = recent
            .get_mut(inner.kind.name())
            .and_then(|names| names.remove(inner.name()));
        let mut windows = recorded.unwrap_or_default();
        let since = inner.heartbeat().running_since();
        let present = ActorMeasures {
            wait_us: inner.oldest_wait_us(moment),
            handle_us: since.map_or(0, |since| moment.saturating_sub(since).max(1)),
            depth: u64::try_from(inner.depth()).unwrap_or(u64::MAX),
            ..ActorMeasures::default()
        };
        for window in &mut windows {
            window.merge(present);
        }
        let [.., hour] = windows;
        let trouble = ActorTrouble {
            state: inner.state(),
            age_us: present.handle_us,
            wait_us: present.wait_us,
            depth: inner.depth(),
            panics: hour.panics,
        };
        Self {
            trouble,
            inner: Arc::clone(inner),
            windows,
        }
    }

    fn figures(&self, moment: Moment) -> ActorFigures {
        let Self {
            trouble,
            inner,
            windows,
        } = self;
        let status = inner.lock_status();
        let batch = (trouble.age_us > 0).then(|| BatchFigures {
            command: status.command.to_owned(),
            commands: status.commands,
            since: moment.wall_time_at(moment.micros.saturating_sub(trouble.age_us)),
            age_us: trouble.age_us,
        });
        ActorFigures {
            state: trouble.state,
            started_at: Some(inner.started_at),
            batch,
            last_batch_us: inner.last_batch_us(),
            mailbox_depth: trouble.depth,
            oldest_wait_us: trouble.wait_us,
            wait_us: inner.wait_us(),
            restarts: status.restarts,
            last_panic: status.last_panic.as_deref().map(str::to_owned),
            restarts_at: status.restarts_at().map(|at| moment.wall_time_at(at)),
            failed_at: status.failed_at().map(|at| moment.wall_time_at(at)),
            ..window_figures(inner.kind.name(), inner.name(), *windows)
        }
    }
}

/// Returns the figures of the actors that have stopped.
fn stopped_actors(recent: WindowsByName) -> impl Iterator<Item = ActorFigures> {
    recent.into_iter().flat_map(|(kind, names)| {
        names.into_iter().map(move |(name, windows)| ActorFigures {
            state: NodeState::Stopped,
            ..window_figures(kind, &name, windows)
        })
    })
}

fn window_figures(kind: &str, name: &str, windows: Windows) -> ActorFigures {
    let [last_minute, last_5_minutes, last_hour] = windows.map(|measured| WindowFigures {
        wait_max_us: measured.wait_us,
        handle_max_us: measured.handle_us,
        depth_max: measured.depth,
        restarts: measured.restarts,
        panics: measured.panics,
    });
    ActorFigures {
        kind: kind.to_owned(),
        name: name.to_owned(),
        last_minute,
        last_5_minutes,
        last_hour,
        ..ActorFigures::default()
    }
}

fn add_panics(actor: &mut ActorFigures, panics: &PanicLog) {
    actor.panics = panics.last(&actor.kind, &actor.name);
}

impl CountedGroup {
    fn new(kind: NodeKind, shard: usize) -> Self {
        Self {
            counted: ActorGroup {
                kind: kind.name().to_owned(),
                shard,
                ..ActorGroup::default()
            },
            worst: Vec::new(),
        }
    }

    fn count_actor(&mut self, trouble: &ActorTrouble) {
        let counted = &mut self.counted;
        *counted.states.entry(trouble.state).or_default() += 1;
        counted.mailbox_depth += trouble.depth;
        counted.oldest_wait_us = counted.oldest_wait_us.max(trouble.wait_us);
    }

    /// Adds an actor to the list. A list longer than twice the limit is cut to the worst actors, to limit memory.
    fn add(&mut self, actor: ListCandidate, actors_max: usize) {
        self.worst.push(actor);
        if self.worst.len() > actors_max.saturating_mul(2) {
            self.sort_and_cut(actors_max);
        }
    }

    /// Sorts the worst actors first and drops those beyond the limit. Equal actors stay in the order of their start.
    fn sort_and_cut(&mut self, actors_max: usize) {
        self.worst
            .sort_unstable_by_key(|one| (Reverse(one.trouble), one.inner.id));
        self.worst.truncate(actors_max);
    }

    fn into_figures(mut self, moment: Moment, actors_max: usize, panics: &PanicLog) -> ActorGroup {
        self.sort_and_cut(actors_max);
        let nodes = self.worst.iter().map(|candidate| {
            let mut figures = candidate.figures(moment);
            add_panics(&mut figures, panics);
            figures
        });
        ActorGroup {
            nodes: nodes.collect(),
            ..self.counted
        }
    }
}
