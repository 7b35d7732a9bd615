//! Requests of the last minutes, second by second, for the charts of the console.

use std::array;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use timing::recent_count::RECENT_SECONDS;

/// The number of past seconds for which requests are kept.
const SECONDS_KEPT: u64 = 300;
/// The number of classes of durations: one for each microsecond up to 4 µs, then four for each doubling. The last one
/// includes all durations of more than an hour.
const CLASSES: usize = 124;

/// The number of requests in each class of durations.
type DurationCounts = [u64; CLASSES];

/// The requests of one second. A slot is used again after `SECONDS_KEPT` seconds. A request that is counted while the
/// slot is cleared may be lost.
#[derive(Debug)]
struct SecondSlot {
    /// The second since the start of the process, plus one. 0 means that the slot was never used.
    second: AtomicU64,
    failures: AtomicU64,
    duration_counts: [AtomicU32; CLASSES],
}

/// The number, failures and durations of the requests of one or several seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RequestStatistics {
    pub(crate) requests: u64,
    /// Answers with a status of 500 or more.
    pub(crate) failures: u64,
    /// The time within which 99 of 100 requests were answered, in microseconds. It may be up to a quarter too long,
    /// because durations are counted in classes. 0 if there were no requests.
    pub(crate) p99_us: u64,
}

#[derive(Debug)]
pub(crate) struct RequestHistory {
    started: Instant,
    slots: Vec<SecondSlot>,
}

impl Default for SecondSlot {
    fn default() -> Self {
        Self {
            second: AtomicU64::default(),
            failures: AtomicU64::default(),
            duration_counts: array::from_fn(|_| AtomicU32::default()),
        }
    }
}

impl Default for RequestHistory {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            slots: (0..SECONDS_KEPT).map(|_| SecondSlot::default()).collect(),
        }
    }
}

impl RequestHistory {
    pub(crate) fn count_request(&self, is_failure: bool, duration: Duration) {
        self.count_request_in_second(self.started.elapsed().as_secs(), is_failure, duration);
    }

    /// Returns the statistics of each of the last `SECONDS_KEPT` seconds except the present one, the oldest first.
    /// All figures are zero for the seconds before the start of the process.
    pub(crate) fn requests_by_second(&self) -> Vec<RequestStatistics> {
        self.requests_by_second_at(self.started.elapsed().as_secs())
    }

    /// Returns the statistics of the `RECENT_SECONDS` seconds before the present one, taken together.
    pub(crate) fn recent_requests(&self) -> RequestStatistics {
        let now = self.started.elapsed().as_secs();
        self.sum_seconds(now.saturating_sub(RECENT_SECONDS)..now)
    }

    fn count_request_in_second(&self, second: u64, is_failure: bool, duration: Duration) {
        let Some(slot) = self.slot_for_second(second) else {
            return;
        };
        if slot.second.swap(second + 1, Ordering::Relaxed) != second + 1 {
            slot.failures.store(0, Ordering::Relaxed);
            for count in &slot.duration_counts {
                count.store(0, Ordering::Relaxed);
            }
        }
        slot.failures
            .fetch_add(u64::from(is_failure), Ordering::Relaxed);
        if let Some(count) = slot.duration_counts.get(duration_class(duration)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn requests_by_second_at(&self, now: u64) -> Vec<RequestStatistics> {
        let seconds = (1..SECONDS_KEPT).rev().map(|ago| {
            now.checked_sub(ago)
                .map_or_else(RequestStatistics::default, |at| {
                    self.sum_seconds(at..at + 1)
                })
        });
        seconds.collect()
    }

    fn sum_seconds(&self, seconds: std::ops::Range<u64>) -> RequestStatistics {
        let mut duration_counts = [0; CLASSES];
        let mut failures = 0;
        for second in seconds {
            let slot = self.slot_for_second(second);
            let Some(slot) = slot.filter(|slot| slot.second.load(Ordering::Relaxed) == second + 1)
            else {
                continue;
            };
            failures += slot.failures.load(Ordering::Relaxed);
            for (sum, count) in duration_counts.iter_mut().zip(&slot.duration_counts) {
                *sum += u64::from(count.load(Ordering::Relaxed));
            }
        }
        RequestStatistics {
            requests: duration_counts.iter().sum(),
            failures,
            p99_us: p99_us(&duration_counts),
        }
    }

    fn slot_for_second(&self, second: u64) -> Option<&SecondSlot> {
        usize::try_from(second % SECONDS_KEPT)
            .ok()
            .and_then(|index| self.slots.get(index))
    }
}

/// Returns the class of a duration. From 4 µs on, each doubling has four classes.
fn duration_class(duration: Duration) -> usize {
    let micros = u32::try_from(duration.as_micros()).unwrap_or(u32::MAX);
    let Some(octave) = micros.checked_ilog2().filter(|octave| *octave >= 2) else {
        return usize::try_from(micros).unwrap_or(0);
    };
    let quarter = (micros >> (octave - 2)) & 3;
    usize::try_from(4 * (octave - 1) + quarter).unwrap_or(CLASSES - 1)
}

/// Returns the longest duration of a class, in microseconds.
fn duration_class_end_us(class: usize) -> u64 {
    let class = u64::try_from(class).unwrap_or(u64::MAX);
    if class < 4 {
        return class;
    }
    let octave = class / 4 + 1;
    ((5 + class % 4) << (octave - 2)) - 1
}

fn p99_us(counts: &DurationCounts) -> u64 {
    let total: u64 = counts.iter().sum();
    let rank = (total * 99).div_ceil(100);
    let mut so_far = 0;
    let class = counts.iter().position(|count| {
        so_far += count;
        so_far >= rank && rank > 0
    });
    class.map_or(0, duration_class_end_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_requests_and_old_seconds_are_dropped() {
        let history = RequestHistory::default();
        let took = Duration::from_millis(3);
        history.count_request_in_second(0, false, took);
        history.count_request_in_second(0, true, took);
        history.count_request_in_second(2, false, took);
        let requests = |now| {
            history
                .requests_by_second_at(now)
                .iter()
                .map(|second| second.requests)
                .collect::<Vec<_>>()
        };
        assert!(requests(3).ends_with(&[0, 2, 0, 1]));
        let first = RequestStatistics {
            requests: 2,
            failures: 1,
            p99_us: 3_071,
        };
        assert!(history.requests_by_second_at(3).contains(&first));
        assert_eq!(history.sum_seconds(0..3).requests, 3);
        history.count_request_in_second(SECONDS_KEPT, false, took);
        assert_eq!(requests(SECONDS_KEPT + 1).last(), Some(&1));
        assert_eq!(
            requests(SECONDS_KEPT + 1).iter().sum::<u64>(),
            2,
            "second 0 is dropped"
        );
    }

    #[test]
    fn each_duration_is_in_a_class_that_ends_less_than_a_quarter_later() {
        for micros in [
            0,
            1,
            3,
            4,
            5,
            7,
            8,
            100,
            999,
            1_000,
            65_535,
            1_000_000,
            u32::MAX,
        ] {
            let class = duration_class(Duration::from_micros(micros.into()));
            let end = duration_class_end_us(class);
            let micros = u64::from(micros);
            assert!(class < CLASSES, "{micros}");
            assert!(
                end >= micros && end <= micros + micros / 4,
                "{micros}: {end}"
            );
        }
        assert_eq!(duration_class(Duration::from_hours(9)), CLASSES - 1);
    }

    #[test]
    fn one_slow_request_in_a_hundred_does_not_count_and_two_do() {
        let history = RequestHistory::default();
        let fast = Duration::from_micros(900);
        let slow = Duration::from_secs(1);
        for _ in 0..99 {
            history.count_request_in_second(0, false, fast);
        }
        history.count_request_in_second(0, false, slow);
        assert_eq!(history.sum_seconds(0..1).p99_us, 1_023);
        history.count_request_in_second(1, false, slow);
        assert!(history.sum_seconds(0..2).p99_us > 1_000_000);
        assert_eq!(history.sum_seconds(5..9), RequestStatistics::default());
    }
}
