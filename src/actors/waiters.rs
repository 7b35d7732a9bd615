//! Who waits for a run to come to its end, in this process. A run that ends elsewhere is noticed by asking
//! the database now and then, so a lost notice delays an answer but never loses one.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::domain::ids::RunId;

/// The callers that wait, by run.
#[derive(Debug, Clone, Default)]
pub struct Waiters(Arc<DashMap<RunId, Arc<Notify>>>);

/// A place among the waiters; leaving it gives it up.
pub(crate) struct Place {
    waiters: Waiters,
    run: RunId,
    notify: Arc<Notify>,
}

impl Waiters {
    pub(crate) fn join(&self, run: RunId) -> Place {
        let notify = Arc::clone(&self.0.entry(run).or_default());
        Place { waiters: self.clone(), run, notify }
    }

    /// Tells the waiters of a run that it has changed.
    pub(crate) fn wake(&self, run: RunId) {
        if let Some(notify) = self.0.get(&run) {
            notify.notify_waiters();
        }
    }
}

impl Place {
    /// Resolves at the next change from now on, also one that comes before it is polled.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.notify.notified()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Two of us: the map's and this one.
        self.waiters.0.remove_if(&self.run, |_, notify| Arc::strong_count(notify) <= 2);
    }
}
