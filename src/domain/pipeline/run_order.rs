//! The order in which runs get a worker. Taxpayers are served in rounds, in the order of their ids: in each round, each
//! taxpayer gets one turn, which takes its most urgent run. So before a taxpayer's third run is taken, at most three
//! runs of each other taxpayer are taken.

use std::collections::HashMap;

/// The runs that wait for a worker.
#[derive(Debug, Clone, Default)]
pub struct WaitingRuns {
    /// The number of waiting runs of each taxpayer.
    pub due: HashMap<i64, u64>,
    /// The taxpayer that was served last. The taxpayer with the next higher id is served next.
    pub last_taxpayer: i64,
}

impl WaitingRuns {
    /// Returns the position of a run; the run that is taken next has position 1. `more_urgent` is the number of more
    /// urgent runs of the same taxpayer, which are taken before it, one in each round.
    pub fn position(&self, taxpayer: i64, more_urgent: u64) -> u64 {
        let own = more_urgent + 1;
        let others = self.due.iter().filter(|(other, _)| **other != taxpayer);
        others.fold(own, |sum, (other, due)| {
            let turns = if self.is_served_before(*other, taxpayer) {
                own
            } else {
                more_urgent
            };
            sum + turns.min(*due)
        })
    }

    /// Returns the number of waiting runs.
    pub fn total(&self) -> u64 {
        self.due.values().sum()
    }

    /// True if the next turn of `taxpayer` comes before that of `other_taxpayer`.
    fn is_served_before(&self, taxpayer: i64, other_taxpayer: i64) -> bool {
        let is_next_round = |id: i64| id <= self.last_taxpayer;
        (is_next_round(taxpayer), taxpayer) < (is_next_round(other_taxpayer), other_taxpayer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(due: impl Into<HashMap<i64, u64>>, last_taxpayer: i64) -> WaitingRuns {
        WaitingRuns {
            due: due.into(),
            last_taxpayer,
        }
    }

    #[test]
    fn a_taxpayer_with_many_runs_delays_others_by_one_run_a_round() {
        let turns = turns([(1, 100_000), (2, 1), (3, 40)], 0);
        assert_eq!(turns.position(2, 0), 2, "one of taxpayer 1 goes first");
        assert_eq!(turns.position(3, 9), 10 + 10 + 1);
        assert_eq!(turns.position(1, 99_999), 100_000 + 1 + 40);
        assert_eq!(turns.total(), 100_041);
        assert_eq!(WaitingRuns::default().position(7, 0), 1);
    }

    #[test]
    fn the_taxpayer_that_was_served_last_comes_last() {
        let positions = |last| {
            let turns = turns([(1, 1), (2, 1), (3, 1)], last);
            [1, 2, 3].map(|taxpayer| turns.position(taxpayer, 0))
        };
        assert_eq!(positions(0), [1, 2, 3]);
        assert_eq!(positions(1), [3, 1, 2]);
        assert_eq!(positions(2), [2, 3, 1]);
        assert_eq!(positions(3), [1, 2, 3], "a new round begins");
    }
}
