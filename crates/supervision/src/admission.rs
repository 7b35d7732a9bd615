//! Permits limit the commands in flight, for each key and for the process.
//!
//! A permit travels in its command's envelope and is returned when the envelope is dropped. Two keys with the same hash
//! share their permits, which is harmless.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use super::counters::Counters;

#[derive(Debug, Clone, Copy)]
pub struct AdmissionLimits {
    pub per_key_max: usize,
    pub process_max: usize,
    /// The time that a refused sender is asked to wait before it sends again.
    pub retry_after: Duration,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self {
            per_key_max: 128,
            process_max: 10_000,
            retry_after: Duration::from_secs(1),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionRefusal {
    PerKey { retry_after: Duration },
    Process { retry_after: Duration },
}

/// Issues the permits. All clones share the same permits.
#[derive(Debug, Clone)]
pub struct Admission(Arc<PermitPool>);

#[derive(Debug)]
struct PermitPool {
    limits: AdmissionLimits,
    counters: Arc<Counters>,
    process: AtomicUsize,
    keys: DashMap<u64, usize>,
}

/// Allows one command to be in flight. Dropping the permit returns it.
#[derive(Debug)]
pub struct Permit {
    pool: Arc<PermitPool>,
    key: u64,
}

impl Admission {
    pub fn new(limits: AdmissionLimits, counters: Arc<Counters>) -> Self {
        Self(Arc::new(PermitPool {
            limits,
            counters,
            process: AtomicUsize::new(0),
            keys: DashMap::new(),
        }))
    }

    pub(crate) fn limits(&self) -> AdmissionLimits {
        self.0.limits
    }

    /// Returns the number of permits that are issued and not yet returned, over all keys.
    pub(crate) fn in_use(&self) -> usize {
        self.0.process.load(Ordering::SeqCst)
    }

    #[cfg(test)]
    pub(crate) fn keys_in_use(&self) -> usize {
        self.0.keys.len()
    }

    /// Issues a permit. Checks the limit of the key first: a sender that floods one key gets 429 and not 503.
    pub(crate) fn admit(&self, key: u64) -> Result<Permit, AdmissionRefusal> {
        let pool = &self.0;
        let retry_after = pool.limits.retry_after;
        if !pool.take_key_permit(key) {
            pool.counters.commands_refused_key.increment();
            return Err(AdmissionRefusal::PerKey { retry_after });
        }
        if !pool.take_process_permit() {
            pool.return_key_permit(key);
            pool.counters.commands_refused_process.increment();
            return Err(AdmissionRefusal::Process { retry_after });
        }
        pool.counters.commands_admitted.increment();
        pool.counters.queue_depth.increment();
        Ok(Permit {
            pool: Arc::clone(pool),
            key,
        })
    }
}

impl PermitPool {
    fn take_key_permit(&self, key: u64) -> bool {
        let mut used = self.keys.entry(key).or_insert(0);
        let free = *used < self.limits.per_key_max;
        if free {
            *used += 1;
        }
        free
    }

    fn return_key_permit(&self, key: u64) {
        if let Entry::Occupied(mut used) = self.keys.entry(key) {
            if *used.get() > 1 {
                *used.get_mut() -= 1;
            } else {
                used.remove();
            }
        }
    }

    fn take_process_permit(&self) -> bool {
        let update = self
            .process
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| {
                (used < self.limits.process_max).then_some(used + 1)
            });
        update.is_ok()
    }
}

/// Returns the permit in the reverse order of `admit`: first to the process, then to the key.
impl Drop for Permit {
    fn drop(&mut self) {
        self.pool.counters.queue_depth.decrement();
        self.pool.process.fetch_sub(1, Ordering::SeqCst);
        self.pool.return_key_permit(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(per_key_max: usize, process_max: usize) -> Admission {
        Admission::new(
            AdmissionLimits {
                per_key_max,
                process_max,
                ..AdmissionLimits::default()
            },
            Arc::default(),
        )
    }

    #[test]
    fn a_key_without_free_permits_is_refused_and_another_key_is_not() {
        let admission = admission(2, 10);
        let held = [admission.admit(1).unwrap(), admission.admit(1).unwrap()];
        let retry_after = Duration::from_secs(1);
        assert_eq!(
            admission.admit(1).unwrap_err(),
            AdmissionRefusal::PerKey { retry_after }
        );
        assert!(admission.admit(2).is_ok());
        drop(held);
        assert!(admission.admit(1).is_ok());
    }

    #[test]
    fn a_full_process_refuses_and_keeps_no_entry_for_the_key() {
        let admission = admission(2, 1);
        let held = admission.admit(1).unwrap();
        let retry_after = Duration::from_secs(1);
        assert_eq!(
            admission.admit(2).unwrap_err(),
            AdmissionRefusal::Process { retry_after }
        );
        assert_eq!(admission.keys_in_use(), 1);
        drop(held);
        assert_eq!((admission.in_use(), admission.keys_in_use()), (0, 0));
        assert_eq!(admission.0.counters.queue_depth.get(), 0);
    }
}
