//! The threads actors live on: one arbiter a core for the work, one more for the janitor.
//!
//! A key always lands on the same arbiter of a process. The janitor has its own, so that an actor that blocks
//! its arbiter is still seen. Arbiters belong to the actix system that is current at `start`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actix::{Arbiter, ArbiterHandle};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long threads may take to end.
const JOIN_WAIT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Arbiters {
    shards: Vec<ArbiterHandle>,
    background: ArbiterHandle,
    threads: Mutex<Vec<Arbiter>>,
}

impl Arbiters {
    /// Starts `shards` arbiters (at least one) and the janitor's. Needs a running actix system.
    pub fn start(shards: usize) -> Self {
        let background = Arbiter::new();
        let mut threads: Vec<_> = (0..shards.max(1)).map(|_| Arbiter::new()).collect();
        let shards = threads.iter().map(Arbiter::handle).collect();
        let background_handle = background.handle();
        threads.push(background);
        Self { shards, background: background_handle, threads: Mutex::new(threads) }
    }

    pub fn count(&self) -> usize {
        self.shards.len()
    }

    /// The shard of a hashed key and its arbiter.
    pub fn for_key(&self, hash: u64) -> (usize, &ArbiterHandle) {
        let shards = u64::try_from(self.shards.len()).unwrap_or(u64::MAX);
        let shard = usize::try_from(hash % shards).unwrap_or(0);
        (shard, &self.shards[shard])
    }

    /// The janitor's.
    pub fn background(&self) -> &ArbiterHandle {
        &self.background
    }

    /// Tells all to stop. What is queued on them is answered as not started or interrupted.
    pub fn stop(&self) {
        for arbiter in self.shards.iter().chain([&self.background]) {
            arbiter.stop();
        }
    }

    /// Waits until all threads have ended, for a bounded time; after `stop`. True when they have, and none panicked.
    pub async fn join(&self) -> bool {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let (ended, joined) = oneshot::channel();
        // No blocking task of the runtime: at its own end that would wait for a thread that an actor blocks.
        std::thread::spawn(|| {
            let is_clean =
                threads.into_iter().map(Arbiter::join).fold(true, |clean, end| clean & end.is_ok());
            let _ = ended.send(is_clean);
        });
        matches!(timeout(JOIN_WAIT, joined).await, Ok(Ok(true)))
    }
}

/// The hash by which a key is placed and admitted; the same in each run.
pub fn hash_of<K: Hash + ?Sized>(key: &K) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[actix::test]
    async fn a_key_keeps_its_arbiter_and_many_keys_use_all() {
        let arbiters = Arbiters::start(3);
        let shards: std::collections::HashSet<_> =
            (0..100).map(|key| arbiters.for_key(hash_of(&key)).0).collect();
        assert_eq!(shards.len(), 3);
        assert_eq!(arbiters.for_key(hash_of("k")).0, arbiters.for_key(hash_of("k")).0);
        arbiters.stop();
        assert!(arbiters.join().await);
        assert!(!arbiters.background().spawn_fn(|| {}));
    }
}
