//! The threads of the actors: one arbiter per core for commands, and one for background work.
//!
//! A key always maps to the same arbiter of a process. The janitor runs on the background arbiter, so that it detects
//! an actor that blocks its own. Arbiters belong to the actix system that is current at `start`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actix::{Arbiter, ArbiterHandle};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Timeout of joining the threads.
const JOIN_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Arbiters {
    shards: Vec<ArbiterHandle>,
    background: ArbiterHandle,
    threads: Mutex<Vec<Arbiter>>,
}

impl Arbiters {
    /// Starts `shards` arbiters (at least one) and the background one. Needs a running actix system.
    pub fn start(shards: usize) -> Self {
        let background = Arbiter::new();
        let mut threads: Vec<_> = (0..shards.max(1)).map(|_| Arbiter::new()).collect();
        let shards = threads.iter().map(Arbiter::handle).collect();
        let background_handle = background.handle();
        threads.push(background);
        Self { shards, background: background_handle, threads: Mutex::new(threads) }
    }

    /// The shard of a hashed key and its arbiter.
    pub fn for_key(&self, hash: u64) -> (usize, &ArbiterHandle) {
        let shards = u64::try_from(self.shards.len()).unwrap_or(u64::MAX);
        let shard = usize::try_from(hash % shards).unwrap_or(0);
        (shard, &self.shards[shard])
    }

    /// The arbiter of the janitor and of other periodic actors.
    pub fn background(&self) -> &ArbiterHandle {
        &self.background
    }

    /// Stops all arbiters. Queued commands get the outcome not started or interrupted.
    pub fn stop(&self) {
        for arbiter in self.shards.iter().chain([&self.background]) {
            arbiter.stop();
        }
    }

    /// Waits for all threads to end, up to a timeout; call `stop` first. True if all ended without a panic.
    pub async fn join(&self) -> bool {
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        let (ended, joined) = oneshot::channel();
        // A plain thread, because the runtime would wait at its end for a blocking task that waits for a blocked actor.
        std::thread::spawn(|| {
            let is_clean =
                threads.into_iter().map(Arbiter::join).fold(true, |clean, end| clean & end.is_ok());
            let _ = ended.send(is_clean);
        });
        matches!(timeout(JOIN_TIMEOUT, joined).await, Ok(Ok(true)))
    }
}

/// The hash that maps a key to its arbiter and its permits; the same in each run.
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
