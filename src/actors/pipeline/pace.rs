//! How fast runs come to their end, as far as this process has seen: the best of the last windows in which any did.
//! Windows without an end say nothing of what could be done, so an outage or a quiet night changes nothing.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

const WINDOW_S: i64 = 5;
/// Ten minutes of work.
const WINDOWS_MAX: usize = 120;
/// Before anything was seen: ten runs a second.
const AT_FIRST: u64 = 50;

#[derive(Debug, Clone, Copy)]
struct Window {
    number: i64,
    ended: u64,
}

/// Counts ends.
#[derive(Debug, Default)]
pub struct Pace(Mutex<VecDeque<Window>>);

impl Pace {
    /// A run has come to its end.
    pub fn ended(&self, now: Timestamp) {
        let number = now.as_second().div_euclid(WINDOW_S);
        let mut windows = self.windows();
        match windows.back_mut() {
            Some(last) if last.number == number => last.ended += 1,
            _ => windows.push_back(Window { number, ended: 1 }),
        }
        if windows.len() > WINDOWS_MAX {
            windows.pop_front();
        }
    }

    /// The time that so many runs take, of which `processes` work at this pace.
    pub fn time_for(&self, runs: u64, processes: u64) -> Duration {
        let best = self.windows().iter().map(|window| window.ended).max().unwrap_or(AT_FIRST);
        let millis = runs.saturating_mul(WINDOW_S.unsigned_abs() * 1_000);
        Duration::from_millis(millis / best.saturating_mul(processes.max(1)).max(1))
    }

    fn windows(&self) -> MutexGuard<'_, VecDeque<Window>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn the_pace_is_the_best_that_was_seen_and_silence_does_not_slow_it() {
        let pace = Pace::default();
        assert_eq!(pace.time_for(100, 1), Duration::from_secs(10), "before anything was seen");
        for second in 0..10 {
            for _ in 0..if second < 5 { 4 } else { 20 } {
                pace.ended(at(second));
            }
        }
        assert_eq!(pace.time_for(100, 1), Duration::from_secs(5));
        assert_eq!(pace.time_for(100, 2), Duration::from_millis(2_500), "two work at it");
        pace.ended(at(3_600));
        assert_eq!(pace.time_for(100, 1), Duration::from_secs(5), "one in an hour is no slower pace");
    }

    #[test]
    fn what_was_long_ago_is_forgotten_once_there_is_something_newer() {
        let pace = Pace::default();
        for _ in 0..100 {
            pace.ended(at(0));
        }
        for window in 1..=120 {
            pace.ended(at(window * WINDOW_S));
        }
        assert_eq!(pace.time_for(1, 1), Duration::from_secs(5));
    }
}
