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
    semaphores: DashMap<K, Arc<Semaphore>>,
    created_count: AtomicUsize,
}

impl<K: Eq + Hash> KeyedSemaphores<K> {
    pub(crate) fn new(size: usize) -> Self {
        Self {
            size,
            semaphores: DashMap::new(),
            created_count: AtomicUsize::new(0),
        }
    }

    /// Returns the number of permits of each semaphore.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns the semaphore of a key. The semaphore is kept while one of its permits is in use.
    pub(crate) fn for_holder(&self, holder: K) -> Arc<Semaphore> {
        let mut is_new = false;
        let semaphore = Arc::clone(&self.semaphores.entry(holder).or_insert_with(|| {
            is_new = true;
            Arc::new(Semaphore::new(self.size))
        }));
        if is_new
            && self.created_count.fetch_add(1, Ordering::Relaxed) % SEMAPHORES_PER_CLEANUP
                == SEMAPHORES_PER_CLEANUP - 1
        {
            self.semaphores
                .retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        semaphore
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_holder_has_permits_of_its_own() {
        let semaphores = KeyedSemaphores::new(1);
        let taken = semaphores.for_holder("a").try_acquire_owned().unwrap();
        assert!(
            semaphores.for_holder("a").try_acquire_owned().is_err()
                && semaphores.for_holder("b").try_acquire_owned().is_ok()
        );
        drop(taken);
        assert!(semaphores.for_holder("a").try_acquire_owned().is_ok());
    }

    #[test]
    fn a_semaphore_in_use_is_kept_and_others_are_dropped() {
        let semaphores = KeyedSemaphores::new(1);
        let taken = semaphores.for_holder(0).try_acquire_owned().unwrap();
        for holder in 1..10 * SEMAPHORES_PER_CLEANUP {
            drop(semaphores.for_holder(holder));
        }
        assert!(
            semaphores.semaphores.len() <= SEMAPHORES_PER_CLEANUP + 1,
            "{}",
            semaphores.semaphores.len()
        );
        assert!(semaphores.for_holder(0).try_acquire_owned().is_err());
        drop(taken);
    }
}
