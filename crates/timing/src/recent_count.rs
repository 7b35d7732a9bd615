//! Counts events by second, for their rate within the last seconds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The number of whole seconds over which a rate is computed.
pub const RECENT_SECONDS: u64 = 10;
/// The number of seconds that are stored. It exceeds `RECENT_SECONDS`, so that counting in the present second never
/// overwrites the count of a second that is still read.
const SLOTS: u64 = 16;

/// The count of one second. After `SLOTS` seconds its slot is used again; an event that is counted at that moment may
/// be lost.
#[derive(Debug, Default)]
struct Slot {
    /// The number of the second since `begun`, plus one; 0 if the slot was never used.
    second: AtomicU64,
    count: AtomicU64,
}

#[derive(Debug)]
pub struct RecentCount {
    begun: Instant,
    slots: Vec<Slot>,
}

impl Default for RecentCount {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
        }
    }
}

impl RecentCount {
    /// Counts one event.
    pub fn increment(&self) {
        self.increment_at(self.begun.elapsed().as_secs());
    }

    /// Returns the number of events within the last `RECENT_SECONDS` whole seconds. The present second is not included.
    pub fn recent(&self) -> u64 {
        self.count_at(self.begun.elapsed().as_secs())
    }

    fn increment_at(&self, second: u64) {
        let Some(slot) = self.slot(second) else {
            return;
        };
        if slot.second.swap(second + 1, Ordering::Relaxed) != second + 1 {
            slot.count.store(0, Ordering::Relaxed);
        }
        slot.count.fetch_add(1, Ordering::Relaxed);
    }

    fn count_at(&self, now: u64) -> u64 {
        let seconds = now.saturating_sub(RECENT_SECONDS)..now;
        let counted = seconds.filter_map(|second| {
            let slot = self.slot(second)?;
            let is_its = slot.second.load(Ordering::Relaxed) == second + 1;
            is_its.then(|| slot.count.load(Ordering::Relaxed))
        });
        counted.sum()
    }

    fn slot(&self, second: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(second % SLOTS).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ten_whole_seconds_are_counted() {
        let count = RecentCount::default();
        for second in [0, 0, 5, 10] {
            count.increment_at(second);
        }
        let seen = [0, 1, 10, 11, 15, 16, 21, 100].map(|now| count.count_at(now));
        assert_eq!(seen, [0, 2, 3, 2, 2, 1, 0, 0]);
        count.increment_at(16);
        assert_eq!(count.count_at(17), 2, "second 0 is forgotten");
    }
}
