//! The breakers of the calls to the authority, as operators see them across all replicas, and the orders of operators.
//! Each replica has a breaker of its own for each operation; an order applies to all replicas.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::kernel::codes::words;

words! {
    /// An instruction of an operator about the calls of an operation.
    BreakerOrderKind {
        /// Make no call until the breaker is reset.
        Trip = "trip",
        Reset = "reset",
    }
}

/// The newest instruction of an operator about the calls of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerOrder {
    pub operation: String,
    pub kind: BreakerOrderKind,
    /// Grows with each order about the operation.
    pub number: i64,
    /// The time of the order. Giving the same order again does not change this time.
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
    /// The end of the pause that the authority asked for.
    pub held_until: Option<Timestamp>,
}

/// The breakers of one operation on all replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedBreaker {
    /// The sums of the figures of all replicas. Figures that cannot be added, such as the state, are those of the
    /// replica whose breaker is in the gravest state.
    pub figures: BreakerFigures,
    /// The replicas whose breaker is not closed.
    pub held_on: Vec<String>,
}

/// Returns the breakers of all replicas by operation, in the order in which the first replica lists them.
pub fn merge_breakers<'a>(
    replicas: impl IntoIterator<Item = (&'a str, &'a [BreakerFigures])>,
) -> Vec<SharedBreaker> {
    let mut merged: Vec<SharedBreaker> = Vec::new();
    for (name, breakers) in replicas {
        for breaker in breakers {
            let known = merged
                .iter_mut()
                .find(|shared| shared.figures.operation == breaker.operation);
            match known {
                Some(shared) => shared.add_replica(name, breaker),
                None => merged.push(SharedBreaker {
                    held_on: name_if_not_closed(name, breaker),
                    figures: breaker.clone(),
                }),
            }
        }
    }
    merged
}

fn name_if_not_closed(replica: &str, breaker: &BreakerFigures) -> Vec<String> {
    let is_held = breaker.state != BreakerCondition::Closed;
    is_held.then(|| replica.to_owned()).into_iter().collect()
}

impl SharedBreaker {
    fn add_replica(&mut self, replica: &str, breaker: &BreakerFigures) {
        self.held_on.extend(name_if_not_closed(replica, breaker));
        let sum = &self.figures;
        let gravest = if breaker.severity() > sum.severity() {
            breaker
        } else {
            sum
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
            ..gravest.clone()
        };
    }
}

impl BreakerFigures {
    /// True if the breaker is closed, no recent call failed, and no call waits.
    pub fn needs_no_attention(&self) -> bool {
        let is_held = self.waiting > 0 || self.held_until.is_some();
        self.state == BreakerCondition::Closed && !is_held && self.failures == 0
    }

    fn severity(&self) -> (bool, BreakerCondition, bool, u64) {
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
            let expected = SharedBreaker {
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
