//! One bucket for each caller and limit. A bucket holds what is left of an allowance (`quota`). A full bucket is
//! dropped, so only recent callers take memory.

use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;
use jiff::Timestamp;

use crate::http::limits::quota::{Allowance, Quota, QuotaExceeded};

/// The number of new buckets after which all full buckets are dropped.
const BUCKETS_PER_CLEANUP: usize = 1_024;

#[derive(Debug)]
pub(crate) struct Buckets<K: Eq + Hash> {
    /// The time when each bucket is full again, in nanoseconds.
    full_at: DashMap<K, i64>,
    created_count: AtomicUsize,
}

impl<K: Eq + Hash> Default for Buckets<K> {
    fn default() -> Self {
        Self {
            full_at: DashMap::new(),
            created_count: AtomicUsize::new(0),
        }
    }
}

impl<K: Eq + Hash> Buckets<K> {
    /// Counts one use in the bucket of this key. Fails if the bucket is empty.
    pub(crate) fn count_use(
        &self,
        key: K,
        quota: Quota,
        now: Timestamp,
    ) -> Result<Allowance, QuotaExceeded> {
        let now = unix_nanos(now);
        match self.full_at.entry(key) {
            Entry::Occupied(mut bucket) => quota.count_use(bucket.get_mut(), now),
            Entry::Vacant(vacant) => {
                let mut full_at = now;
                let allowance = quota.count_use(&mut full_at, now);
                drop(vacant.insert(full_at));
                self.drop_full_buckets_periodically(now);
                allowance
            }
        }
    }

    /// Undoes one count in a bucket.
    pub(crate) fn give_back(&self, key: &K, quota: Quota, now: Timestamp) {
        if let Some(mut full_at) = self.full_at.get_mut(key) {
            quota.give_back(&mut full_at, unix_nanos(now));
        }
    }

    /// Drops full buckets after every `BUCKETS_PER_CLEANUP` new buckets. Deadlocks if the calling thread holds a lock
    /// of the map.
    fn drop_full_buckets_periodically(&self, now: i64) {
        if self.created_count.fetch_add(1, Ordering::Relaxed) % BUCKETS_PER_CLEANUP
            == BUCKETS_PER_CLEANUP - 1
        {
            self.full_at.retain(|_, full_at| *full_at > now);
        }
    }
}

/// Returns the time in nanoseconds, the unit in which buckets count.
fn unix_nanos(now: Timestamp) -> i64 {
    i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_a_bucket_of_its_own() {
        let buckets = Buckets::default();
        let quota = Quota::per_minute(1).unwrap();
        let now = Timestamp::UNIX_EPOCH;
        assert!(
            buckets.count_use("a", quota, now).is_ok()
                && buckets.count_use("b", quota, now).is_ok()
        );
        assert!(buckets.count_use("a", quota, now).is_err());
    }

    #[test]
    fn buckets_that_are_full_again_are_dropped() {
        let buckets = Buckets::default();
        let quota = Quota::per_minute(60).unwrap();
        for n in 0..10 * BUCKETS_PER_CLEANUP {
            let now = Timestamp::from_second(i64::try_from(n / BUCKETS_PER_CLEANUP).unwrap() * 2)
                .unwrap();
            assert!(buckets.count_use(n, quota, now).is_ok());
        }
        assert!(
            buckets.full_at.len() <= BUCKETS_PER_CLEANUP,
            "{}",
            buckets.full_at.len()
        );
    }
}
