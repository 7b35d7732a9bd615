//! Requests of the last minutes, second by second, for the charts of the console.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The number of seconds that are kept.
const SECONDS_KEPT: u64 = 300;

/// One second of requests. A slot is used again after `SECONDS_KEPT`; a request that is counted at that moment may be
/// lost.
#[derive(Debug, Default)]
struct Slot {
    /// The second since the start of the process, plus one. 0 means that the slot was never used.
    second: AtomicU64,
    requests: AtomicU64,
    failures: AtomicU64,
    micros: AtomicU64,
}

/// The requests of one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RequestsInSecond {
    pub(crate) requests: u64,
    /// Answers with a status of 500 or more.
    pub(crate) failures: u64,
    /// The time that all requests took together.
    pub(crate) took: Duration,
}

#[derive(Debug)]
pub(crate) struct RequestHistory {
    begun: Instant,
    slots: Vec<Slot>,
}

impl Default for RequestHistory {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            slots: (0..SECONDS_KEPT).map(|_| Slot::default()).collect(),
        }
    }
}

impl RequestHistory {
    pub(crate) fn count(&self, is_failure: bool, took: Duration) {
        self.count_at(self.begun.elapsed().as_secs(), is_failure, took);
    }

    /// Returns the requests of the past seconds, the oldest first, without the present second. The seconds before the
    /// start of the process are empty.
    pub(crate) fn seconds(&self) -> Vec<RequestsInSecond> {
        self.seconds_at(self.begun.elapsed().as_secs())
    }

    fn count_at(&self, second: u64, is_failure: bool, took: Duration) {
        let Some(slot) = self.slot(second) else {
            return;
        };
        if slot.second.swap(second + 1, Ordering::Relaxed) != second + 1 {
            for counter in [&slot.requests, &slot.failures, &slot.micros] {
                counter.store(0, Ordering::Relaxed);
            }
        }
        slot.requests.fetch_add(1, Ordering::Relaxed);
        slot.failures
            .fetch_add(u64::from(is_failure), Ordering::Relaxed);
        slot.micros.fetch_add(
            u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    fn seconds_at(&self, now: u64) -> Vec<RequestsInSecond> {
        let second = |ago| {
            now.checked_sub(ago)
                .map_or_else(RequestsInSecond::default, |at| self.second(at))
        };
        (1..SECONDS_KEPT).rev().map(second).collect()
    }

    fn second(&self, second: u64) -> RequestsInSecond {
        let used = self
            .slot(second)
            .filter(|slot| slot.second.load(Ordering::Relaxed) == second + 1);
        used.map_or_else(RequestsInSecond::default, |slot| RequestsInSecond {
            requests: slot.requests.load(Ordering::Relaxed),
            failures: slot.failures.load(Ordering::Relaxed),
            took: Duration::from_micros(slot.micros.load(Ordering::Relaxed)),
        })
    }

    fn slot(&self, second: u64) -> Option<&Slot> {
        usize::try_from(second % SECONDS_KEPT)
            .ok()
            .and_then(|index| self.slots.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_requests_and_old_seconds_are_forgotten() {
        let history = RequestHistory::default();
        let took = Duration::from_millis(3);
        history.count_at(0, false, took);
        history.count_at(0, true, took);
        history.count_at(2, false, took);
        let requests = |now| {
            history
                .seconds_at(now)
                .iter()
                .map(|second| second.requests)
                .collect::<Vec<_>>()
        };
        assert!(requests(3).ends_with(&[0, 2, 0, 1]));
        let first = RequestsInSecond {
            requests: 2,
            failures: 1,
            took: took * 2,
        };
        assert!(history.seconds_at(3).contains(&first));
        history.count_at(SECONDS_KEPT, false, took);
        assert_eq!(requests(SECONDS_KEPT + 1).last(), Some(&1));
        assert_eq!(
            requests(SECONDS_KEPT + 1).iter().sum::<u64>(),
            2,
            "second 0 is forgotten"
        );
    }
}
