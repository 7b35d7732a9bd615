//! Notifies the listeners of a key, such as that of an endpoint, in this process. Listeners also poll, so a lost
//! notification only delays them.

use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// One `Notify` for each key that has a listener.
#[derive(Debug, Clone)]
pub struct KeyedNotify<K: Eq + Hash>(Arc<DashMap<K, Arc<Notify>>>);

/// Listens to one key until the listener is dropped.
pub(crate) struct Listener<K: Eq + Hash> {
    waiters: KeyedNotify<K>,
    key: K,
    notify: Arc<Notify>,
}

impl<K: Eq + Hash> Default for KeyedNotify<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Copy> KeyedNotify<K> {
    pub(crate) fn listen_to(&self, key: K) -> Listener<K> {
        let notify = Arc::clone(&self.0.entry(key).or_default());
        Listener {
            waiters: Self(Arc::clone(&self.0)),
            key,
            notify,
        }
    }

    /// Notifies the listeners of a key.
    pub(crate) fn notify(&self, key: K) {
        if let Some(notify) = self.0.get(&key) {
            notify.notify_waiters();
        }
    }
}

impl<K: Eq + Hash> Listener<K> {
    /// Returns a future that resolves at the next notification after this call, even if the future is first polled
    /// after the notification.
    pub(crate) fn next_notification(&self) -> Notified<'_> {
        self.notify.notified()
    }
}

impl<K: Eq + Hash> Drop for Listener<K> {
    fn drop(&mut self) {
        // If there are only two references, those of the map and of this listener, nobody else listens.
        self.waiters
            .0
            .remove_if(&self.key, |_, notify| Arc::strong_count(notify) <= 2);
    }
}
