//! The breakers of the calls to the authority, as operators see them across all replicas, and the orders of operators.
//! Each replica has a breaker of its own for each operation; an order applies to all replicas.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::kernel::codes::words;
use crate::domain::kernel::upstream::UpstreamCause;

words! {
    /// An instruction of an operator about the calls of an operation.
    BreakerOrderKind {
        /// Make no call until the breaker is reset.
        Trip = "trip",
        /// Close the breaker and make calls again.
        Reset = "reset",
    }
}

/// The newest instruction of an operator about the calls of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerOrder {
    pub operation: String,
    pub kind: BreakerOrderKind,
    /// The number of this instruction. It grows with each instruction about the operation.
    pub number: i64,
    /// The time of the instruction. Giving the same instruction again does not change this time.
    pub ordered_at: Timestamp,
}

/// The state of a breaker. The variants are ordered from the least grave to the gravest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerCondition {
    #[default]
    Closed,
    HalfOpen,
    Open,
}

impl BreakerCondition {
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::HalfOpen => "half_open",
            Self::Open => "open",
        }
    }
}

/// The breaker and the call limit of one operation, as one replica reports them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BreakerFigures {
    pub operation: String,
    pub state: BreakerCondition,
    /// True if an operator has stopped the calls.
    pub is_tripped: bool,
    /// True if the breaker blocks the calls of all accounts; otherwise it blocks those of `held_accounts` accounts
    /// only.
    pub is_outage: bool,
    pub held_accounts: u64,
    pub since: Option<Timestamp>,
    /// The time of the next probe. `None` if no probe is planned: the breaker is closed or tripped, a probe is in
    /// flight, or the next call is the probe.
    pub next_probe_at: Option<Timestamp>,
    /// The cause of the last call's failure, or of most failures while the breaker is open. `None` if the last call
    /// succeeded and the breaker is closed, or if the fault is ours but other calls are answered.
    pub cause: Option<String>,
    /// The number of calls within the last 30 s. `failures` is the number of them that failed.
    pub calls: u32,
    pub failures: u32,
    pub openings: u64,
    /// The number of calls that may be in flight at a time. `in_flight` are in flight now, and `waiting` wait for a
    /// free slot.
    pub limit: u32,
    /// The limit outside of measurements. During a short measurement of the authority's answer time, `limit` is lower.
    /// 0 from a replica of an older version, which does not report it.
    pub lasting_limit: u32,
    pub in_flight: u32,
    pub waiting: u64,
    /// The end of the pause that the authority asked for; `None` if it asked for none.
    pub held_until: Option<Timestamp>,
}

/// The breakers of one operation on all replicas, merged into one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedBreaker {
    /// The sums of the figures of all replicas. Figures that cannot be added, such as the state, are those of the
    /// replica whose breaker is in the gravest state.
    pub figures: BreakerFigures,
    /// The replicas whose breaker is not closed.
    pub held_on: Vec<String>,
}

/// Returns the breakers of all replicas by operation, in the order in which the first replica lists them.
pub fn merge_breakers<'a>(
    replicas: impl IntoIterator<Item = (&'a str, &'a [BreakerFigures])>,
) -> Vec<MergedBreaker> {
    let mut merged: Vec<MergedBreaker> = Vec::new();
    for (name, breakers) in replicas {
        for breaker in breakers {
            let known = merged
                .iter_mut()
                .find(|shared| shared.figures.operation == breaker.operation);
            match known {
                Some(shared) => shared.add_replica(name, breaker),
                None => merged.push(MergedBreaker {
                    held_on: replica_name_unless_closed(name, breaker)
                        .into_iter()
                        .collect(),
                    figures: breaker.clone(),
                }),
            }
        }
    }
    merged
}

fn replica_name_unless_closed(replica: &str, breaker: &BreakerFigures) -> Option<String> {
    (breaker.state != BreakerCondition::Closed).then(|| replica.to_owned())
}

impl MergedBreaker {
    fn add_replica(&mut self, replica: &str, breaker: &BreakerFigures) {
        self.held_on
            .extend(replica_name_unless_closed(replica, breaker));
        let sum = self.figures.clone();
        let gravest = if breaker.severity_key() > sum.severity_key() {
            breaker
        } else {
            &sum
        };
        self.figures = BreakerFigures {
            calls: sum.calls.saturating_add(breaker.calls),
            failures: sum.failures.saturating_add(breaker.failures),
            openings: sum.openings.saturating_add(breaker.openings),
            limit: sum.limit.saturating_add(breaker.limit),
            lasting_limit: sum.lasting_limit.saturating_add(breaker.lasting_limit),
            in_flight: sum.in_flight.saturating_add(breaker.in_flight),
            waiting: sum.waiting.saturating_add(breaker.waiting),
            held_until: sum.held_until.max(breaker.held_until),
            cause: [gravest, &sum, breaker]
                .into_iter()
                .find_map(|figures| figures.cause.clone()),
            ..gravest.clone()
        };
    }
}

impl BreakerFigures {
    /// True if the breaker is closed, no recent call failed, no call waits, and the calls meet no fault of ours.
    pub fn needs_no_attention(&self) -> bool {
        let is_held = self.waiting > 0 || self.held_until.is_some();
        let has_fault = self.failures > 0 || self.own_fault().is_some();
        self.state == BreakerCondition::Closed && !is_held && !has_fault
    }

    /// Returns the fault of ours that the calls meet; `None` if they meet none.
    pub fn own_fault(&self) -> Option<UpstreamCause> {
        match self.cause.as_deref() {
            Some("key_refused") => Some(UpstreamCause::Credentials),
            Some("untrusted") => Some(UpstreamCause::Tls),
            _ => None,
        }
    }

    /// Returns a key whose order is the order of severity, the gravest last.
    fn severity_key(&self) -> (bool, BreakerCondition, bool, u64) {
        (
            self.is_tripped,
            self.state,
            self.is_outage,
            self.held_accounts,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker(operation: &str, state: BreakerCondition) -> BreakerFigures {
        BreakerFigures {
            operation: operation.into(),
            state,
            calls: 3,
            failures: 1,
            openings: 1,
            limit: 64,
            lasting_limit: 64,
            in_flight: 2,
            waiting: 4,
            ..BreakerFigures::default()
        }
    }

    #[test]
    fn a_breaker_whose_calls_meet_a_fault_of_ours_needs_attention() {
        for (cause, failures, fault, is_calm) in [
            (None, 0, None, true),
            (Some("down"), 0, None, true),
            (Some("down"), 1, None, false),
            (
                Some("key_refused"),
                0,
                Some(UpstreamCause::Credentials),
                false,
            ),
            (Some("untrusted"), 0, Some(UpstreamCause::Tls), false),
        ] {
            let figures = BreakerFigures {
                cause: cause.map(str::to_owned),
                failures,
                ..BreakerFigures::default()
            };
            assert_eq!(figures.own_fault(), fault, "{cause:?}");
            assert_eq!(figures.needs_no_attention(), is_calm, "{cause:?}");
            // The cause that one replica reports is not hidden by another that made no call.
            let idle = [BreakerFigures::default()];
            let calling = [figures];
            for replicas in [
                [("a", &idle[..]), ("b", &calling[..])],
                [("b", &calling[..]), ("a", &idle[..])],
            ] {
                assert_eq!(merge_breakers(replicas)[0].figures.own_fault(), fault);
            }
        }
    }

    #[test]
    fn figures_are_added_and_the_gravest_state_counts() {
        let open = BreakerFigures {
            cause: Some("timed_out".into()),
            ..breaker("sign", BreakerCondition::Open)
        };
        let first = [
            breaker("sign", BreakerCondition::Closed),
            breaker("health", BreakerCondition::Closed),
        ];
        let second = [open.clone()];
        for replicas in [
            [("a", &first[..]), ("b", &second[..])],
            [("b", &second[..]), ("a", &first[..])],
        ] {
            let merged = merge_breakers(replicas);
            assert_eq!(merged.len(), 2);
            let expected = MergedBreaker {
                held_on: vec!["b".to_owned()],
                figures: BreakerFigures {
                    calls: 6,
                    failures: 2,
                    openings: 2,
                    limit: 128,
                    lasting_limit: 128,
                    in_flight: 4,
                    waiting: 8,
                    ..open.clone()
                },
            };
            assert_eq!(merged[0], expected);
            assert_eq!(merged[1].held_on, [""; 0]);
        }
    }
}
