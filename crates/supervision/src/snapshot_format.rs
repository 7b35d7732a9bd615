//! The format of a snapshot: the figures of the tree and its actors that operators see. One process writes a snapshot,
//! and another process reads it, perhaps of another version. A field that the reader does not find gets its default
//! value.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::counters::CounterValues;
use super::node_state::NodeState;
use super::quarantine::QuarantineRecord;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeSnapshot {
    pub taken_at: Timestamp,
    pub ready: bool,
    /// The reason why the process is not ready. `None` if it is ready.
    pub reason: Option<String>,
    pub groups: Vec<ActorGroup>,
    /// The first actors of each kind by each `Ranking`, also those that have stopped within the last hour.
    /// `Ranking::top` chooses from them.
    pub top: Vec<ActorFigures>,
    pub counters: CounterValues,
    pub quarantine: Vec<QuarantineRecord>,
}

/// The actors of one kind on one shard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActorGroup {
    pub kind: String,
    /// The number of the shard, which is one thread. Actors on the background thread count as shard 0.
    pub shard: usize,
    /// The number of actors of the group in each state.
    pub states: BTreeMap<NodeState, usize>,
    /// The number of commands in the queues of all actors of the group.
    pub mailbox_depth: usize,
    /// The longest wait of a command that waits now; 0 if none waits.
    pub oldest_wait_us: u64,
    /// The actors of the group with the most trouble, the worst first.
    pub nodes: Vec<ActorFigures>,
}

/// One actor, or one piece of work that runs without an actor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActorFigures {
    pub kind: String,
    pub name: String,
    /// `Stopped` if the actor is no longer in memory; the windows then still show what it did.
    pub state: NodeState,
    /// `None` if the actor is no longer in memory.
    pub started_at: Option<Timestamp>,
    /// The batch in progress; `None` while the actor is idle.
    pub batch: Option<BatchFigures>,
    /// The duration of the last batch that has ended.
    pub last_batch_us: Option<u64>,
    /// The number of commands in the actor's queue, including those of the batch in progress.
    pub mailbox_depth: usize,
    /// The time that the oldest command waits which no batch has taken yet; 0 if none waits.
    pub oldest_wait_us: u64,
    /// The time that the oldest command of the last batch waited for the start of the batch.
    pub wait_us: u64,
    /// Restarts since the actor started.
    pub restarts: u32,
    pub last_panic: Option<String>,
    /// The last panics, the newest first.
    pub panics: Vec<PanicRecord>,
    /// The time at which the actor restarts after its panic; `None` unless it waits for its restart.
    pub restarts_at: Option<Timestamp>,
    /// The time of the panic that was one too many; `None` unless the actor has failed.
    pub failed_at: Option<Timestamp>,
    pub last_minute: WindowFigures,
    pub last_5_minutes: WindowFigures,
    pub last_hour: WindowFigures,
}

/// The commands that an actor processes at present.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BatchFigures {
    /// The name of the first command.
    pub command: String,
    pub commands: u32,
    pub since: Timestamp,
    pub age_us: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PanicRecord {
    pub at: Timestamp,
    /// The text of the panic and its place in the source.
    pub cause: String,
}

/// The worst figures of an actor within a window, including the present batch and queue. Of a kind with many actors,
/// only the worst are kept; the figures of the others are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowFigures {
    /// The longest time that a command waited for its batch.
    pub wait_max_us: u64,
    /// The longest time that a batch took.
    pub handle_max_us: u64,
    /// The largest number of commands in the actor's queue.
    pub depth_max: u64,
    pub restarts: u64,
    /// The number of panics. It exceeds `restarts` if the actor has failed, and for work without an actor, which ends
    /// with its panic.
    pub panics: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_snapshot_of_another_version_is_read_without_what_only_that_version_knows() {
        let written = json!({
            "ready": true,
            "colour": "green",
            "groups": [{
                "kind": "account",
                "states": { "running": 2, "hibernating": 3 },
                "nodes": [{ "name": "7", "state": "hibernating", "mood": { "good": true } }],
            }],
            "top": [{
                "kind": "account",
                "name": "8",
                "state": "busy",
                "batch": { "command": "Create", "age_us": 5 },
                "last_minute": { "wait_max_us": 9, "naps": 1 },
            }],
            "counters": { "panics": 4, "naps": 2 },
        });
        let read: TreeSnapshot = serde_json::from_value(written).unwrap();
        assert_eq!((read.ready, read.taken_at), (true, Timestamp::UNIX_EPOCH));
        let group = &read.groups[0];
        let states = BTreeMap::from([(NodeState::Running, 2), (NodeState::Unknown, 3)]);
        assert_eq!(group.states, states);
        assert_eq!(group.nodes[0].state, NodeState::Unknown);
        let actor = &read.top[0];
        assert_eq!(
            (actor.state, actor.last_minute.wait_max_us),
            (NodeState::Busy, 9)
        );
        let batch = actor.batch.as_ref().unwrap();
        assert_eq!(
            (batch.command.as_str(), batch.age_us, batch.commands),
            ("Create", 5, 0)
        );
        assert_eq!(read.counters.panics, 4);
    }

    #[test]
    fn a_snapshot_is_read_as_it_was_written() {
        let at = Timestamp::from_second(1_000).unwrap();
        let actor = ActorFigures {
            kind: "account".to_owned(),
            state: NodeState::Restarting,
            started_at: Some(at),
            restarts_at: Some(at),
            panics: vec![PanicRecord {
                at,
                cause: "poison".to_owned(),
            }],
            ..ActorFigures::default()
        };
        let snapshot = TreeSnapshot {
            taken_at: at,
            top: vec![actor],
            quarantine: vec![QuarantineRecord::default()],
            ..TreeSnapshot::default()
        };
        let written = serde_json::to_value(&snapshot).unwrap();
        assert_eq!(written["top"][0]["restarts_at"], "1970-01-01T00:16:40Z");
        let read: TreeSnapshot = serde_json::from_value(written).unwrap();
        assert_eq!(read, snapshot);
    }
}
