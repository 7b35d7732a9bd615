//! The API keys that this process holds in memory, so that a request need not read its key from the database.
//!
//! A cached key is used only while this process has a lease, and only if it was read in the newest generation of keys
//! that this process knows. Every change of keys starts a new generation. `accounts::key_leases` obtains the lease and
//! looks for new generations. A key that is not cached may still exist in the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dashmap::DashMap;
use jiff::Timestamp;
use timing::clock;
use tokio::sync::Notify;

use crate::domain::access::api_key::{KeyOwner, KeyScope};
use crate::domain::access::session::OperatorRole;
use crate::domain::kernel::ids::IntegratorId;

/// The SHA-256 of a key's text.
pub type KeyDigest = [u8; 32];

/// The maximum number of cached keys. At this size the cache takes about 30 MB.
const KEYS_MAX: usize = 131_072;

/// A key as it was read from the database.
#[derive(Debug)]
pub(crate) struct CachedKey {
    pub(crate) owner: KeyOwner,
    /// The integrator to which the use of the key is charged; `None` for a key of an operator.
    pub(crate) payer: Option<IntegratorId>,
    pub(crate) scope: KeyScope,
    /// The role of the key's operator; `None` for keys of integrators and taxpayers.
    pub(crate) role: Option<OperatorRole>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) expires_at: Option<Timestamp>,
    /// The time of the last recorded use, in microseconds since 1970.
    pub(crate) last_used: AtomicI64,
    /// The newest generation that this process knew before it read the key.
    pub(crate) generation: i64,
}

#[derive(Debug)]
pub struct KeyCache {
    /// The name of this process in the table of leases.
    process: String,
    keys: DashMap<KeyDigest, Arc<CachedKey>>,
    generation: AtomicI64,
    opened: Instant,
    /// The end of the lease, in microseconds since `opened`.
    lease_end: AtomicU64,
    is_used: AtomicBool,
    wanted: Notify,
}

impl KeyCache {
    pub(crate) fn new() -> Self {
        Self {
            process: clock::new_id().to_string(),
            keys: DashMap::new(),
            generation: AtomicI64::new(0),
            opened: Instant::now(),
            lease_end: AtomicU64::new(0),
            is_used: AtomicBool::new(false),
            wanted: Notify::new(),
        }
    }

    pub(crate) fn process_id(&self) -> &str {
        &self.process
    }

    /// Returns the cached key with this digest; `None` if it is not cached, or if it may have changed in the database.
    pub(crate) fn find(&self, digest: &KeyDigest) -> Option<Arc<CachedKey>> {
        // Reads the flag before writing it: all threads share the flag, and a write would remove it from the caches of
        // the other processors.
        if !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        if !self.has_lease() {
            self.wanted.notify_one();
            return None;
        }
        let key = self.keys.get(digest)?;
        (key.generation == self.generation()).then(|| Arc::clone(&key))
    }

    /// Keeps a key that was read from the database.
    pub(crate) fn keep(&self, digest: KeyDigest, key: CachedKey) {
        if self.keys.len() >= KEYS_MAX {
            let generation = self.generation();
            self.keys.retain(|_, key| key.generation == generation);
        }
        if self.keys.len() >= KEYS_MAX {
            self.keys.clear();
        }
        self.keys.insert(digest, Arc::new(key));
    }

    /// Returns the newest generation that this process knows. Call this before reading a key from the database.
    pub(crate) fn generation(&self) -> i64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Records the present generation of the database, unless this process knows the same or a newer one. Keys that
    /// were read in an older generation are not used again. Returns true if the generation is recorded as the newest.
    pub(crate) fn record_generation_if_newer(&self, current: i64) -> bool {
        self.generation.fetch_max(current, Ordering::SeqCst) < current
    }

    pub(crate) fn set_lease_end(&self, end: Instant) {
        let end = micros(end.saturating_duration_since(self.opened));
        self.lease_end.store(end, Ordering::SeqCst);
    }

    pub(crate) fn end_lease(&self) {
        self.lease_end.store(0, Ordering::SeqCst);
    }

    fn has_lease(&self) -> bool {
        micros(self.opened.elapsed()) < self.lease_end.load(Ordering::SeqCst)
    }

    /// Waits until a request needs a cached key while there is no lease.
    pub(crate) async fn wait_until_lease_needed(&self) {
        self.wanted.notified().await;
    }

    /// Returns true if a request has looked for a key since the last call of this function.
    pub(crate) fn take_used_flag(&self) -> bool {
        self.is_used.swap(false, Ordering::Relaxed)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::access::caller::KeyKind;

    fn key(generation: i64) -> CachedKey {
        CachedKey {
            owner: KeyOwner {
                kind: KeyKind::Operator,
                id: 1,
            },
            payer: None,
            scope: KeyScope::Full,
            role: None,
            name: None,
            expires_at: None,
            last_used: AtomicI64::new(0),
            generation,
        }
    }

    #[test]
    fn a_key_is_found_only_under_a_lease_and_in_its_generation() {
        let cache = KeyCache::new();
        assert!(
            cache.record_generation_if_newer(7)
                && !cache.record_generation_if_newer(7)
                && !cache.record_generation_if_newer(6)
        );
        cache.keep([1; 32], key(7));
        assert!(cache.find(&[1; 32]).is_none(), "without a lease");
        cache.set_lease_end(Instant::now() + Duration::from_mins(1));
        assert!(cache.find(&[1; 32]).is_some() && cache.find(&[2; 32]).is_none());
        assert!(cache.record_generation_if_newer(8));
        assert!(cache.find(&[1; 32]).is_none(), "in a newer generation");
        cache.keep([1; 32], key(7));
        assert!(
            cache.find(&[1; 32]).is_none(),
            "read before the newer generation was seen"
        );
        cache.keep([1; 32], key(8));
        assert!(cache.find(&[1; 32]).is_some());
        cache.end_lease();
        assert!(cache.find(&[1; 32]).is_none(), "after the end of the lease");
    }

    #[test]
    fn the_cache_is_bounded() {
        let cache = KeyCache::new();
        let digest = |number: usize| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&number.to_le_bytes());
            digest
        };
        for number in 0..KEYS_MAX + 10 {
            cache.keep(digest(number), key(0));
        }
        assert_eq!(cache.keys.len(), 10);
    }
}
