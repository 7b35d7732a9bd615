//! Publishes the state of a run after each commit to the callers in this process that wait for the run. These callers
//! also read the run from the database now and then, because it may end on another replica.

use std::future::pending;
use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::watch;

use crate::domain::kernel::ids::RunId;
use crate::domain::pipeline::Run;

/// The run after its latest commit; `None` until the first commit that is published.
type LatestRun = Option<Arc<Run>>;

/// A channel for each run that somebody waits for.
#[derive(Debug, Clone, Default)]
pub struct RunChanges(Arc<DashMap<RunId, watch::Sender<LatestRun>>>);

/// Listens for changes of one run until the listener is dropped.
pub(crate) struct RunListener {
    changes: RunChanges,
    id: RunId,
    /// `None` only while the listener is dropped.
    latest: Option<watch::Receiver<LatestRun>>,
}

impl RunChanges {
    pub(crate) fn listen_to(&self, id: RunId) -> RunListener {
        let latest = self.0.entry(id).or_default().subscribe();
        RunListener {
            changes: self.clone(),
            id,
            latest: Some(latest),
        }
    }

    /// Sends the run, as it is after a commit, to its listeners.
    pub(crate) fn publish(&self, run: &Run) {
        if let Some(listeners) = self.0.get(&run.id) {
            listeners.send_replace(Some(Arc::new(run.clone())));
        }
    }
}

impl RunListener {
    /// Waits for the next commit that changes the run, and returns the run as it is then. If there were several commits
    /// since the last call, returns the run after the last of them.
    pub(crate) async fn next(&mut self) -> Arc<Run> {
        if let Some(latest) = &mut self.latest {
            while latest.changed().await.is_ok() {
                if let Some(run) = latest.borrow_and_update().clone() {
                    return run;
                }
            }
        }
        pending().await
    }
}

impl Drop for RunListener {
    fn drop(&mut self) {
        // Drops the receiver before counting the rest, so that of two listeners that are dropped at the same time the
        // later one finds no receiver and removes the channel.
        self.latest = None;
        let channels = &self.changes.0;
        channels.remove_if(&self.id, |_, listeners| listeners.receiver_count() == 0);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use jiff::Timestamp;
    use timing::clock;

    use super::*;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::pipeline::{Operation, RunRequest, RunState};

    #[tokio::test]
    async fn each_listener_gets_the_latest_change_of_its_run_and_leaves_nothing_behind() {
        let changes = RunChanges::default();
        let request = RunRequest::sample("INV1-94AD90FB-20260115", Operation::Submit);
        let run = Run::new(
            clock::new_id(),
            TaxpayerId(7),
            request,
            Timestamp::UNIX_EPOCH,
        );
        changes.publish(&run);
        let mut first = changes.listen_to(run.id);
        let mut second = changes.listen_to(run.id);
        let mut other = changes.listen_to(clock::new_id());
        assert!(first.next().now_or_never().is_none(), "it joined later");
        changes.publish(&run);
        changes.publish(&run.clone().cancel(run.created_at));
        for listener in [&mut first, &mut second] {
            let told = listener.next().now_or_never().unwrap();
            assert_eq!(told.state(), RunState::Cancelled);
            assert!(listener.next().now_or_never().is_none());
        }
        assert!(other.next().now_or_never().is_none());
        drop(first);
        assert_eq!(changes.0.len(), 2, "one still listens");
        drop((second, other));
        assert!(changes.0.is_empty());
    }
}
