//! The endpoints that are served now. If this process loses a lease without noticing and claims the lane again, the task
//! of the former lease ends, so that no endpoint is served twice at a time.

use std::sync::Arc;

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

use crate::store::lanes::Lease;

/// The epoch of the lease under which each lane is served, and what ends its task.
type Tasks = Arc<DashMap<String, (i64, CancellationToken)>>;

#[derive(Default)]
pub(super) struct Serving(Tasks);

/// An endpoint that is served until this is dropped.
pub(super) struct Served {
    tasks: Tasks,
    lane: String,
    epoch: i64,
    pub(super) is_taken_over: CancellationToken,
}

impl Serving {
    /// Begins to serve an endpoint, and ends the task of a former lease of its lane.
    pub(super) fn begin(&self, lease: &Lease) -> Served {
        let is_taken_over = CancellationToken::new();
        if let Some((_, former)) = self.0.insert(lease.key.clone(), (lease.epoch, is_taken_over.clone())) {
            former.cancel();
        }
        let tasks = Arc::clone(&self.0);
        Served { tasks, lane: lease.key.clone(), epoch: lease.epoch, is_taken_over }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.tasks.remove_if(&self.lane, |_, (epoch, _)| *epoch == self.epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lanes::LaneKind;

    fn lease(key: &str, epoch: i64) -> Lease {
        Lease { kind: LaneKind::Endpoint, key: key.to_owned(), epoch }
    }

    #[test]
    fn the_task_of_a_former_lease_ends_and_no_other() {
        let serving = Serving::default();
        let former = serving.begin(&lease("7", 1));
        let other = serving.begin(&lease("8", 1));
        assert!(!former.is_taken_over.is_cancelled());
        let present = serving.begin(&lease("7", 2));
        let ended = [&former, &other, &present].map(|served| served.is_taken_over.is_cancelled());
        assert_eq!(ended, [true, false, false]);
        drop(former);
        assert_eq!(serving.0.len(), 2, "the task of the present lease is still known");
        drop((present, other));
        assert!(serving.0.is_empty());
    }
}
