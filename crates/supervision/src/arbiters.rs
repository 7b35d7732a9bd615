//! The threads of the actors: one arbiter per core for commands, and one for background work.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actix::{Arbiter, ArbiterHandle};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The longest time that `join` waits for the threads to end.
const JOIN_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Arbiters {
    shards: Vec<ArbiterHandle>,
    background: ArbiterHandle,
    threads: Mutex<Vec<Arbiter>>,
}

impl Arbiters {
    /// Starts `shards` arbiters for commands (at least one) and one background arbiter. Needs a running actix system.
    pub fn start(shards: usize) -> Self {
        let background = Arbiter::new();
        let mut threads: Vec<_> = (0..shards.max(1)).map(|_| Arbiter::new()).collect();
        let shards = threads.iter().map(Arbiter::handle).collect();
        let background_handle = background.handle();
        threads.push(background);
        Self {
            shards,
            background: background_handle,
            threads: Mutex::new(threads),
        }
    }

    /// Returns the index and the handle of the arbiter for an actor whose key has this hash.
    pub fn for_key(&self, hash: u64) -> (usize, &ArbiterHandle) {
        let shards = u64::try_from(self.shards.len()).unwrap_or(u64::MAX);
        let shard = usize::try_from(hash % shards).unwrap_or(0);
        (shard, &self.shards[shard])
    }

    /// Returns the arbiter on which the janitor and the other periodic actors run.
    pub fn background(&self) -> &ArbiterHandle {
        &self.background
    }

    /// Stops all arbiters. The senders of queued commands get the outcome *not started* or *interrupted*.
    pub fn stop(&self) {
        for arbiter in self.shards.iter().chain([&self.background]) {
            arbiter.stop();
        }
    }

    /// Waits until all threads have ended, at most `JOIN_TIMEOUT`. Returns true if all ended in time and none panicked.
    pub async fn join(&self) -> bool {
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let (ended, joined) = oneshot::channel();
        // Joins on a plain thread, not in a blocking task: if a thread hangs, the runtime would wait forever for such a
        // task at shutdown.
        std::thread::spawn(|| {
            let is_clean = threads
                .into_iter()
                .map(Arbiter::join)
                .fold(true, |clean, end| clean & end.is_ok());
            let _ = ended.send(is_clean);
        });
        matches!(timeout(JOIN_TIMEOUT, joined).await, Ok(Ok(true)))
    }
}

/// Hashes a key, to choose its arbiter and its permits. Gives the same hash in every run of the program.
pub fn hash_key<K: Hash + ?Sized>(key: &K) -> u64 {
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
        let shards: std::collections::HashSet<_> = (0..100)
            .map(|key| arbiters.for_key(hash_key(&key)).0)
            .collect();
        assert_eq!(shards.len(), 3);
        assert_eq!(
            arbiters.for_key(hash_key("k")).0,
            arbiters.for_key(hash_key("k")).0
        );
        arbiters.stop();
        assert!(arbiters.join().await);
        assert!(!arbiters.background().spawn_fn(|| {}));
    }
}
