//! Measures the throughput of this process: the highest number of runs that ended in one of the last time windows.
//! Windows in which no run ended are ignored, so an outage or a quiet night does not lower the throughput.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

const WINDOW_S: i64 = 5;
/// The number of windows that are kept. If a run ended in every window, they cover the last ten minutes.
const WINDOWS_MAX: usize = 120;
/// Used until a first run has ended: 50 runs per window, which is ten runs a second.
const RUNS_PER_WINDOW_DEFAULT: u64 = 50;

#[derive(Debug, Clone, Copy)]
struct ThroughputWindow {
    number: i64,
    ended: u64,
}

/// The number of ended runs in each of the last windows.
#[derive(Debug, Default)]
pub struct Throughput(Mutex<VecDeque<ThroughputWindow>>);

impl Throughput {
    /// Counts an ended run.
    pub fn record_end(&self, now: Timestamp) {
        let number = now.as_second().div_euclid(WINDOW_S);
        let mut windows = self.windows();
        match windows.back_mut() {
            Some(last) if last.number == number => last.ended += 1,
            _ => windows.push_back(ThroughputWindow { number, ended: 1 }),
        }
        if windows.len() > WINDOWS_MAX {
            windows.pop_front();
        }
    }

    /// Returns the time that `processes` processes with this throughput need for `runs` runs.
    pub fn time_for(&self, runs: u64, processes: u64) -> Duration {
        let best = self
            .windows()
            .iter()
            .map(|window| window.ended)
            .max()
            .unwrap_or(RUNS_PER_WINDOW_DEFAULT);
        let millis = runs.saturating_mul(WINDOW_S.unsigned_abs() * 1_000);
        Duration::from_millis(millis / best.saturating_mul(processes.max(1)).max(1))
    }

    /// Returns the time since the end of the window in which the last run ended; `None` if no run has ended yet.
    pub fn quiet_for(&self, now: Timestamp) -> Option<Duration> {
        let last = self.windows().back()?.number;
        let ended = Timestamp::from_second((last + 1).saturating_mul(WINDOW_S)).ok()?;
        Some(Duration::try_from(now.duration_since(ended)).unwrap_or_default())
    }

    fn windows(&self) -> MutexGuard<'_, VecDeque<ThroughputWindow>> {
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
    fn throughput_is_the_best_measured_and_idle_time_does_not_lower_it() {
        let throughput = Throughput::default();
        assert_eq!(
            throughput.time_for(100, 1),
            Duration::from_secs(10),
            "before anything was seen"
        );
        for second in 0..10 {
            for _ in 0..if second < 5 { 4 } else { 20 } {
                throughput.record_end(at(second));
            }
        }
        assert_eq!(throughput.time_for(100, 1), Duration::from_secs(5));
        assert_eq!(
            throughput.time_for(100, 2),
            Duration::from_millis(2_500),
            "two work at it"
        );
        throughput.record_end(at(3_600));
        assert_eq!(
            throughput.time_for(100, 1),
            Duration::from_secs(5),
            "one in an hour is no slower throughput"
        );
    }

    #[test]
    fn a_process_is_quiet_from_the_window_in_which_its_last_run_ended() {
        let throughput = Throughput::default();
        assert_eq!(throughput.quiet_for(at(0)), None);
        throughput.record_end(at(0));
        assert_eq!(throughput.quiet_for(at(1)), Some(Duration::ZERO));
        assert_eq!(throughput.quiet_for(at(65)), Some(Duration::from_mins(1)));
    }

    #[test]
    fn old_windows_are_forgotten_once_there_are_newer_ones() {
        let throughput = Throughput::default();
        for _ in 0..100 {
            throughput.record_end(at(0));
        }
        for window in 1..=120 {
            throughput.record_end(at(window * WINDOW_S));
        }
        assert_eq!(throughput.time_for(1, 1), Duration::from_secs(5));
    }
}
