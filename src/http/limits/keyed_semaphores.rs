//! One semaphore of the same size for each key, so that one account cannot use the permits of another.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashmap::DashMap;
use tokio::sync::Semaphore;

/// The number of new semaphores after which all unused semaphores are dropped.
const SEMAPHORES_PER_CLEANUP: usize = 1_024;

#[derive(Debug)]
pub(crate) struct KeyedSemaphores<K: Eq + Hash> {
    size: usize,
    in_use: DashMap<K, Arc<Semaphore>>,
    made: AtomicUsize,
}

impl<K: Eq + Hash> KeyedSemaphores<K> {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size,
            in_use: DashMap::new(),
            made: AtomicUsize::new(0),
        }
    }

    /// Returns the number of permits of each semaphore.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns the semaphore of a key. The semaphore is kept while one of its permits is in use.
    pub(crate) fn for_holder(&self, holder: K) -> Arc<Semaphore> {
        let mut is_new = false;
        let share = Arc::clone(&self.in_use.entry(holder).or_insert_with(|| {
            is_new = true;
            Arc::new(Semaphore::new(self.size))
        }));
        if is_new
            && self.made.fetch_add(1, Ordering::Relaxed) % SEMAPHORES_PER_CLEANUP
                == SEMAPHORES_PER_CLEANUP - 1
        {
            self.in_use.retain(|_, share| Arc::strong_count(share) > 1);
        }
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holder_has_a_share_of_its_own() {
        let shares = KeyedSemaphores::new(1);
        let taken = shares.for_holder("a").try_acquire_owned().unwrap();
        assert!(
            shares.for_holder("a").try_acquire_owned().is_err()
                && shares.for_holder("b").try_acquire_owned().is_ok()
        );
        drop(taken);
        assert!(shares.for_holder("a").try_acquire_owned().is_ok());
    }

    #[test]
    fn a_share_in_use_is_kept_and_others_are_forgotten() {
        let shares = KeyedSemaphores::new(1);
        let taken = shares.for_holder(0).try_acquire_owned().unwrap();
        for holder in 1..10 * SEMAPHORES_PER_CLEANUP {
            drop(shares.for_holder(holder));
        }
        assert!(
            shares.in_use.len() <= SEMAPHORES_PER_CLEANUP + 1,
            "{}",
            shares.in_use.len()
        );
        assert!(shares.for_holder(0).try_acquire_owned().is_err());
        drop(taken);
    }
}
