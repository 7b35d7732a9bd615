//! The limits and delays of restarts (`RestartPolicy`), and the recent panics of one actor (`RestartBudget`).
//!
//! The delay doubles with each panic. Up to half of it is then subtracted at random, so that actors with a common cause
//! do not restart at the same moment.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use timing::clock;
use timing::jitter::equal_jitter;

#[derive(Debug, Clone, Copy)]
pub struct RestartPolicy {
    pub backoff_initial: Duration,
    pub backoff_max: Duration,
    /// The number of restarts that are allowed within `window`. One more panic within `window` escalates.
    pub restarts_max: usize,
    pub window: Duration,
    /// Must exceed the number of commands that one actor may have in flight, so that the mailbox is never full.
    pub mailbox_capacity: usize,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            backoff_initial: Duration::from_millis(50),
            backoff_max: Duration::from_secs(5),
            restarts_max: 3,
            window: Duration::from_mins(1),
            mailbox_capacity: 256,
        }
    }
}

/// The times of one actor's panics inside the window.
#[derive(Debug)]
pub struct RestartBudget {
    policy: RestartPolicy,
    panics: VecDeque<Instant>,
}

impl RestartBudget {
    pub fn new(policy: RestartPolicy) -> Self {
        Self {
            policy,
            panics: VecDeque::new(),
        }
    }

    /// Counts one panic at `now`. Returns the delay before the restart, or `None` if the budget is spent.
    pub fn spend_restart(&mut self, now: Instant) -> Option<Duration> {
        while self
            .panics
            .front()
            .is_some_and(|then| now.duration_since(*then) >= self.policy.window)
        {
            self.panics.pop_front();
        }
        self.panics.push_back(now);
        (self.panics.len() <= self.policy.restarts_max)
            .then(|| equal_jitter(self.next_wait(), clock::system_rng().random()))
    }

    /// Returns the wait before the next restart, from which a random part of up to half is then subtracted.
    fn next_wait(&self) -> Duration {
        let doublings = u32::try_from(self.panics.len().saturating_sub(1))
            .unwrap_or(u32::MAX)
            .min(20);
        self.policy
            .backoff_initial
            .saturating_mul(1 << doublings)
            .min(self.policy.backoff_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fourth_panic_within_the_window_exhausts_the_budget() {
        let mut budget = RestartBudget::new(RestartPolicy::default());
        let start = Instant::now();
        for second in 0..3 {
            assert!(
                budget
                    .spend_restart(start + Duration::from_secs(second))
                    .is_some()
            );
        }
        assert_eq!(budget.spend_restart(start + Duration::from_secs(59)), None);
    }

    #[test]
    fn a_panic_outside_the_window_does_not_count() {
        let mut budget = RestartBudget::new(RestartPolicy::default());
        let start = Instant::now();
        for second in 0..3 {
            assert!(
                budget
                    .spend_restart(start + Duration::from_secs(second))
                    .is_some()
            );
        }
        assert!(
            budget
                .spend_restart(start + Duration::from_mins(1))
                .is_some()
        );
        assert_eq!(budget.spend_restart(start + Duration::from_mins(1)), None);
    }

    #[test]
    fn the_delay_doubles_up_to_its_limit_with_jitter_in_its_upper_half() {
        let policy = RestartPolicy {
            restarts_max: 40,
            ..RestartPolicy::default()
        };
        let mut budget = RestartBudget::new(policy);
        let start = Instant::now();
        for whole_ms in [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            let wait = budget.spend_restart(start).unwrap();
            let whole = Duration::from_millis(whole_ms);
            assert!(wait <= whole && wait >= whole / 2, "{wait:?} for {whole:?}");
        }
        for _ in 0..30 {
            assert!(budget.spend_restart(start).unwrap() <= policy.backoff_max);
        }
    }
}
