//! Who waits for something to change, in this process: for a run to come to its end, for new work of an endpoint.
//! What changes elsewhere is noticed by asking the database now and then, so a lost notice delays an answer but never
//! loses one.

use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Those that wait, by what they wait for.
#[derive(Debug, Clone)]
pub struct Waiters<K: Eq + Hash>(Arc<DashMap<K, Arc<Notify>>>);

/// A place among the waiters; leaving it gives it up.
pub(crate) struct Place<K: Eq + Hash> {
    waiters: Waiters<K>,
    key: K,
    notify: Arc<Notify>,
}

impl<K: Eq + Hash> Default for Waiters<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Copy> Waiters<K> {
    pub(crate) fn join(&self, key: K) -> Place<K> {
        let notify = Arc::clone(&self.0.entry(key).or_default());
        Place { waiters: Self(Arc::clone(&self.0)), key, notify }
    }

    /// Tells those that wait for this that it has changed.
    pub(crate) fn wake(&self, key: K) {
        if let Some(notify) = self.0.get(&key) {
            notify.notify_waiters();
        }
    }
}

impl<K: Eq + Hash> Place<K> {
    /// Resolves at the next change from now on, also one that comes before it is polled.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.notify.notified()
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        // Two of us: the map's and this one.
        self.waiters.0.remove_if(&self.key, |_, notify| Arc::strong_count(notify) <= 2);
    }
}
