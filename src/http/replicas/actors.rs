//! The worst actors of all replicas. The figures of this process are current. The figures of another replica come
//! from its last heartbeat, which names only its worst actors.

use database::column::json;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use supervision::{ActorFigures, Ranking, Tree, choose_worst};

use crate::domain::replica::{Replica, ReplicaList, ReplicaState};
use crate::http::state::ApiState;

/// The maximum number of actors in a heartbeat, and their maximum size in bytes. A heartbeat is small because it is
/// written every second.
const REPORTED_ACTORS_MAX: usize = 20;
const REPORTED_BYTES_MAX: usize = 12 * 1_024;

/// An actor of one of the replicas.
#[derive(Debug, Serialize)]
pub(crate) struct ReplicaActor {
    pub(crate) replica: String,
    /// The time of the heartbeat that named the actor; `None` for an actor of the answering process, whose figures are
    /// current.
    pub(crate) told_at: Option<Timestamp>,
    /// The age of the figures, in microseconds.
    pub(crate) told_us_ago: u64,
    #[serde(flatten)]
    pub(crate) actor: ActorFigures,
}

impl AsRef<ActorFigures> for ReplicaActor {
    fn as_ref(&self) -> &ActorFigures {
        &self.actor
    }
}

/// Returns the worst actors of this process, as its heartbeat contains them.
pub(super) fn local_worst_actors(tree: &Tree) -> Vec<Value> {
    let top = tree.snapshot(REPORTED_ACTORS_MAX).top;
    let mut bytes = 0;
    choose_worst(&top, REPORTED_ACTORS_MAX)
        .into_iter()
        .map(to_heartbeat_entry)
        .take_while(|actor| {
            bytes += json(actor).len();
            bytes <= REPORTED_BYTES_MAX
        })
        .collect()
}

/// Returns an actor as a heartbeat contains it: with its last panic only, and without fields that have their default
/// value.
fn to_heartbeat_entry(actor: &ActorFigures) -> Value {
    let short = ActorFigures {
        panics: actor.panics.iter().take(1).cloned().collect(),
        last_panic: None,
        ..actor.clone()
    };
    let mut value = serde_json::to_value(short).unwrap_or_default();
    remove_default_fields(&mut value);
    value
}

/// Removes fields that are null, zero or empty, because the reader of the heartbeat fills in these values.
fn remove_default_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(remove_default_fields);
            fields.retain(|_, field| !is_default_value(field));
        }
        Value::Array(values) => values.iter_mut().for_each(remove_default_fields),
        _ => {}
    }
}

fn is_default_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) => false,
    }
}

/// Returns the `max` worst actors, worst first: of all replicas that are not missing or, if `replica` is given, of the
/// replica with this name, even if it is missing. `own` are the actors of this process.
pub(crate) fn rank_actors(
    state: &ApiState,
    own: Vec<ActorFigures>,
    ranking: Ranking<'_>,
    replica: Option<&str>,
    max: usize,
) -> Vec<ReplicaActor> {
    let identity = state.replicas.identity();
    let list = state.replicas.last_list();
    let others = list
        .replicas
        .iter()
        .filter(|other| other.identity.id != identity.id)
        .filter(|other| match replica {
            Some(name) => other.identity.name == name,
            None => list.state(other) != ReplicaState::Missing,
        })
        .flat_map(|other| reported_actors(&list, other));
    let is_own_included = replica.is_none_or(|name| identity.name == name);
    let own = own
        .into_iter()
        .filter(|_| is_own_included)
        .map(|actor| ReplicaActor {
            replica: identity.name.clone(),
            told_at: None,
            told_us_ago: 0,
            actor,
        });
    ranking.top(own.chain(others).collect(), max)
}

/// Returns the actors in the last heartbeat of a replica. Leaves out actors that this version cannot read, because the
/// replica runs another version.
fn reported_actors(list: &ReplicaList, replica: &Replica) -> Vec<ReplicaActor> {
    let told_us_ago = list.micros_until_last_read(replica.seen_at);
    let entries = replica.figures.worst_actors.iter();
    let actors = entries.filter_map(|entry| {
        Some(ReplicaActor {
            replica: replica.identity.name.clone(),
            told_at: Some(replica.seen_at),
            told_us_ago,
            actor: serde_json::from_value(entry.clone()).ok()?,
        })
    });
    actors.collect()
}

#[cfg(test)]
mod tests {
    use supervision::{BatchFigures, NodeState, PanicRecord, WindowFigures};

    use super::*;
    use crate::domain::replica::{ReplicaFigures, ReplicaIdentity};

    fn failing_actor(name: &str) -> ActorFigures {
        let panic = |cause: &str| PanicRecord {
            at: Timestamp::from_second(1_000).unwrap(),
            cause: cause.repeat(200),
        };
        ActorFigures {
            kind: "taxpayer".to_owned(),
            name: name.to_owned(),
            state: NodeState::Busy,
            batch: Some(BatchFigures {
                command: "create".to_owned(),
                age_us: 7,
                ..BatchFigures::default()
            }),
            last_panic: Some("last".to_owned()),
            panics: vec![panic("a"), panic("b")],
            last_hour: WindowFigures {
                wait_max_us: 9,
                ..WindowFigures::default()
            },
            ..ActorFigures::default()
        }
    }

    #[test]
    fn a_reported_actor_has_its_last_panic_its_replica_and_its_age() {
        let entry = to_heartbeat_entry(&failing_actor("7"));
        assert_eq!(entry["last_hour"], serde_json::json!({ "wait_max_us": 9 }));
        assert!(entry.get("last_minute").is_none(), "{entry}");
        let second = |second| Timestamp::from_second(second).unwrap();
        let replica = Replica {
            identity: ReplicaIdentity {
                id: "2".to_owned(),
                name: "b:1".to_owned(),
            },
            seen_at: second(8),
            leases: 0,
            figures: ReplicaFigures {
                worst_actors: vec![entry, serde_json::json!({ "kind": 7 })],
                ..ReplicaFigures::default()
            },
        };
        let list = ReplicaList {
            read_at: Some(second(10)),
            ..ReplicaList::default()
        };
        let actors = reported_actors(&list, &replica);
        assert_eq!(
            actors.len(),
            1,
            "an unreadable actor is left out: {actors:?}"
        );
        let mut expected = failing_actor("7");
        expected.last_panic = None;
        expected.panics.truncate(1);
        assert_eq!(actors[0].actor, expected);
        assert_eq!(
            (
                actors[0].replica.as_str(),
                actors[0].told_at,
                actors[0].told_us_ago
            ),
            ("b:1", Some(second(8)), 2_000_000)
        );
    }

    #[test]
    fn twenty_failing_actors_fit_into_a_heartbeat() {
        let bytes: usize = (0..REPORTED_ACTORS_MAX)
            .map(|number| json(&to_heartbeat_entry(&failing_actor(&number.to_string()))).len())
            .sum();
        assert!(bytes <= REPORTED_BYTES_MAX, "{bytes}");
    }
}
