//! The replicas: the processes that serve one deployment. Each replica writes a heartbeat with its figures into the
//! database every second. So all replicas show the same figures, and a dead replica is noticed.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::breaker::BreakerFigures;

/// A replica whose last heartbeat is older than this counts as missing. It has then left out about three heartbeats.
pub const MISSING_AFTER: SignedDuration = SignedDuration::from_secs(3);
/// A replica that has announced its stop may give no heartbeat for this long before it counts as missing. It finishes
/// its work first, which takes some ten seconds.
const STOPPING_FOR: SignedDuration = SignedDuration::from_secs(30);
/// A missing replica is listed for this long, unless a replica of the same name starts.
pub const REMEMBERED_FOR: SignedDuration = SignedDuration::from_hours(1);

/// The cause that a breaker reports if the authority refuses the key.
const KEY_REFUSED: &str = "key_refused";

/// Identifies a process. The id is new at each start; the name stays the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaIdentity {
    /// The id under which the process holds leases.
    pub id: String,
    /// The host and port of the process, or the name in its settings.
    pub name: String,
}

/// A replica as its last heartbeat describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Replica {
    pub identity: ReplicaIdentity,
    /// The time of the last heartbeat, by the clock of the database.
    pub seen_at: Timestamp,
    /// The number of lanes that the replica holds.
    pub leases: u64,
    pub figures: ReplicaFigures,
}

/// The figures that a replica reports about itself. A replica of another version may leave out fields or add some.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplicaFigures {
    pub version: String,
    pub started_at: Timestamp,
    /// True if the replica takes no new work, because it is stopping.
    pub is_stopping: bool,
    /// The reason why the replica is not ready; `None` if it is ready.
    pub not_ready: Option<String>,
    /// The reason why the replica is degraded, although it is ready; `None` if nothing is wrong.
    pub degraded: Option<String>,
    /// Set while the authority refuses the key of the replica.
    pub refused_key: Option<RefusedKey>,
    pub resident_bytes: Option<u64>,
    /// The time by which the replica's clock is ahead of the database's clock, in milliseconds; negative if it is
    /// behind.
    pub clock_ahead_ms: i64,
    /// The number of requests that the replica answered within the last ten seconds. 99 of 100 were answered within
    /// `p99_us`.
    pub requests: u64,
    pub p99_us: u64,
    /// The number of runs that ended within the last ten seconds. `delivery_attempts` covers the same time.
    pub runs_ended: u64,
    pub delivery_attempts: u64,
    pub actors: ActorTotals,
    /// The incidents that the replica finds in what it alone knows.
    pub incidents: Vec<ReplicaIncident>,
    /// The worst actors by each measure, as the JSON objects of the replica that reports them. Fields with default
    /// values are left out of them.
    pub worst_actors: Vec<Value>,
    pub breakers: Vec<BreakerFigures>,
}

impl Replica {
    /// Returns the refusal of the replica's key. A replica of an older version does not report it. Then the refusal is
    /// read from its breakers, and counts from the last heartbeat.
    pub fn refused_key(&self) -> Option<RefusedKey> {
        let reported = self.figures.refused_key.clone();
        reported.or_else(|| {
            let breakers = self.figures.breakers.iter();
            let refused = breakers.filter(|one| one.cause.as_deref() == Some(KEY_REFUSED));
            let operations: Vec<_> = refused.map(|one| one.operation.clone()).collect();
            (!operations.is_empty()).then_some(RefusedKey {
                since: self.seen_at,
                operations,
            })
        })
    }

    /// True if the replica is not stopping and the authority accepts its key: some of its last calls were answered, and
    /// none of its breakers reports a refused key.
    pub fn has_accepted_key(&self) -> bool {
        let mut breakers = self.figures.breakers.iter();
        !self.figures.is_stopping
            && self.refused_key().is_none()
            && breakers.any(|one| one.calls > one.failures)
    }
}

/// An incident that a replica finds in what it alone knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplicaIncident {
    /// The name of the kind of the incident. A replica of another version may name a kind that this one does not know.
    pub kind: String,
    pub cause: String,
    pub summary: String,
    pub count: u64,
    /// The time at which the incident began, or was first seen, by the replica's own clock.
    pub since: Timestamp,
    pub is_since_first_sight: bool,
}

/// The refusal of a replica's key by the authority.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefusedKey {
    /// The time at which the replica first saw the refusal, by its own clock.
    pub since: Timestamp,
    /// The operations at whose last calls the key was refused.
    pub operations: Vec<String>,
}

/// The actors of a replica in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ActorTotals {
    pub actors: u64,
    /// The number of commands that wait in all mailboxes.
    pub queued: u64,
    pub failed: u64,
    pub stuck: u64,
    /// The number of panics since the start of the process. `restarts` covers the same time.
    pub panics: u64,
    pub restarts: u64,
}

/// All known replicas, as this process last read them from the database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReplicaList {
    /// The time of the last read, by the clock of the database; `None` before the first read.
    pub read_at: Option<Timestamp>,
    /// The start of the time in which this process has given its own heartbeats without a gap. If the process or its
    /// database was held up, it cannot tell whether the others gave heartbeats meanwhile.
    pub watched_since: Option<Timestamp>,
    /// The replicas, ordered by name.
    pub replicas: Vec<Replica>,
}

/// The state of a replica, as operators see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaState {
    Ready,
    /// The replica is ready, but something is wrong, such as its key at the authority.
    Degraded,
    NotReady,
    Stopping,
    /// The last heartbeat is too old.
    Missing,
}

impl ReplicaList {
    /// Returns the state of a replica of this list.
    pub fn state(&self, replica: &Replica) -> ReplicaState {
        if self.is_missing(replica) {
            ReplicaState::Missing
        } else if replica.figures.is_stopping {
            ReplicaState::Stopping
        } else if replica.figures.not_ready.is_some() {
            ReplicaState::NotReady
        } else if replica.figures.degraded.is_some() {
            ReplicaState::Degraded
        } else {
            ReplicaState::Ready
        }
    }

    /// Returns the name of the process that holds leases under this id. An unknown process is named by its id.
    pub fn name<'a>(&'a self, id: &'a str) -> &'a str {
        self.find_replica(id)
            .map_or(id, |replica| replica.identity.name.as_str())
    }

    pub fn find_replica(&self, id: &str) -> Option<&Replica> {
        self.replicas
            .iter()
            .find(|replica| replica.identity.id == id)
    }

    /// Returns the replicas that are not missing.
    pub fn present_replicas(&self) -> impl Iterator<Item = &Replica> {
        self.replicas
            .iter()
            .filter(|replica| !self.is_missing(replica))
    }

    pub fn missing_replicas(&self) -> impl Iterator<Item = &Replica> {
        self.replicas
            .iter()
            .filter(|replica| self.is_missing(replica))
    }

    /// Returns the microseconds from `since` until this process last read the replicas; 0 if it has not read them yet.
    pub fn micros_until_last_read(&self, since: Timestamp) -> u64 {
        let passed = self
            .read_at
            .map_or(0, |read_at| read_at.duration_since(since).as_micros());
        u64::try_from(passed).unwrap_or(0)
    }

    fn is_missing(&self, replica: &Replica) -> bool {
        let (Some(read_at), Some(watched_since)) = (self.read_at, self.watched_since) else {
            return false;
        };
        let patience = if replica.figures.is_stopping {
            STOPPING_FOR
        } else {
            MISSING_AFTER
        };
        read_at.duration_since(replica.seen_at) > patience
            && read_at.duration_since(watched_since) > MISSING_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn replica(seen_at: i64, figures: ReplicaFigures) -> Replica {
        Replica {
            identity: ReplicaIdentity {
                id: "one".into(),
                name: "host:8080".into(),
            },
            seen_at: at(seen_at),
            leases: 0,
            figures,
        }
    }

    /// Returns the state at second 100 of a replica that was last seen at `seen_at`, as a reader sees it that has
    /// watched since `watched_since`.
    fn state(seen_at: i64, watched_since: i64, figures: &ReplicaFigures) -> ReplicaState {
        let replica = replica(seen_at, figures.clone());
        let list = ReplicaList {
            read_at: Some(at(100)),
            watched_since: Some(at(watched_since)),
            replicas: vec![replica.clone()],
        };
        assert_eq!(
            list.missing_replicas().count() + list.present_replicas().count(),
            1,
            "each is either missing or present"
        );
        list.state(&replica)
    }

    #[test]
    fn a_replica_is_missing_after_three_signs_that_a_reader_could_have_seen() {
        let ready = ReplicaFigures::default();
        let stopping = ReplicaFigures {
            is_stopping: true,
            ..ReplicaFigures::default()
        };
        let not_ready = ReplicaFigures {
            not_ready: Some("an actor has given up".into()),
            ..ReplicaFigures::default()
        };
        let degraded = ReplicaFigures {
            degraded: Some("The authority refuses our key".into()),
            ..ReplicaFigures::default()
        };
        let both = ReplicaFigures {
            not_ready: Some("the database is silent".into()),
            ..degraded.clone()
        };
        let cases = [
            (97, 0, &degraded, ReplicaState::Degraded),
            (96, 0, &degraded, ReplicaState::Missing),
            (97, 0, &both, ReplicaState::NotReady),
            (97, 0, &ready, ReplicaState::Ready),
            (96, 0, &ready, ReplicaState::Missing),
            (96, 97, &ready, ReplicaState::Ready),
            (96, 96, &ready, ReplicaState::Missing),
            (97, 0, &not_ready, ReplicaState::NotReady),
            (96, 0, &not_ready, ReplicaState::Missing),
            (70, 0, &stopping, ReplicaState::Stopping),
            (69, 0, &stopping, ReplicaState::Missing),
        ];
        for (seen_at, watched_since, figures, expected) in cases {
            assert_eq!(
                state(seen_at, watched_since, figures),
                expected,
                "seen at {seen_at}, watched since {watched_since}"
            );
        }
        let unread = ReplicaList::default();
        assert_eq!(unread.state(&replica(0, ready)), ReplicaState::Ready);
    }

    /// The figures of a replica as JSON, the operations for which its key is refused, and whether it has one that is
    /// accepted.
    type KeyCase = (&'static str, &'static [&'static str], bool);

    #[test]
    fn only_answered_calls_show_that_the_key_of_a_replica_is_accepted() {
        let cases: [KeyCase; 8] = [
            ("{}", &[], false),
            (
                r#"{"breakers":[{"operation":"sign","calls":3,"failures":2}]}"#,
                &[],
                true,
            ),
            (
                r#"{"breakers":[{"operation":"sign","calls":3,"failures":3}]}"#,
                &[],
                false,
            ),
            (
                r#"{"breakers":[{"operation":"sign","calls":3,"failures":3,"cause":"down"},{"operation":"pull","calls":1}]}"#,
                &[],
                true,
            ),
            (
                r#"{"is_stopping":true,"breakers":[{"operation":"sign","calls":3}]}"#,
                &[],
                false,
            ),
            // An older version reports the cause of the breaker alone.
            (
                r#"{"breakers":[{"operation":"sign","calls":3,"failures":2,"cause":"key_refused"},{"operation":"pull"}]}"#,
                &["sign"],
                false,
            ),
            (
                r#"{"breakers":[{"operation":"sign","cause":"key_refused"}]}"#,
                &["sign"],
                false,
            ),
            (
                r#"{"refused_key":{"operations":["pull"]},"breakers":[{"operation":"sign","calls":3}]}"#,
                &["pull"],
                false,
            ),
        ];
        for (text, refused, is_accepted) in cases {
            let replica = replica(100, strict_json::from_trusted(text).unwrap());
            let operations = replica.refused_key().map(|key| key.operations);
            assert_eq!(operations.unwrap_or_default(), refused, "{text}");
            assert_eq!(replica.has_accepted_key(), is_accepted, "{text}");
        }
    }

    #[test]
    fn figures_of_another_version_are_read_as_far_as_they_are_known() {
        let text = r#"{"version":"9.0.0","new":{"a":1},"actors":{"queued":3,"new":1},"breakers":[{"operation":"sign","new":1}]}"#;
        let figures: ReplicaFigures = strict_json::from_trusted(text).unwrap();
        assert_eq!(figures.version, "9.0.0");
        assert_eq!(figures.actors.queued, 3);
        assert_eq!(figures.breakers[0].operation, "sign");
    }
}
