//! The endpoints that this process delivers to now. If the process loses the lease of an endpoint without noticing, and
//! then leases the endpoint again, the task of the former lease ends before the next one begins. So two tasks never
//! serve an endpoint at the same time.

use std::sync::Arc;

use dashmap::DashMap;
use tokio_util::sync::CancellationToken;

use crate::store::lanes::Lease;

#[derive(Default)]
pub(super) struct ServedEndpoints(Arc<DashMap<String, ServingTask>>);

/// The task that serves an endpoint.
#[derive(Clone)]
struct ServingTask {
    epoch: i64,
    /// Cancelled when the endpoint is leased again, to end the task of the former lease.
    lease_end: CancellationToken,
    /// Cancelled when the task has ended.
    task_end: CancellationToken,
}

/// An endpoint that counts as served until this value is dropped.
pub(super) struct ServedEndpoint {
    serving: Arc<DashMap<String, ServingTask>>,
    lane: String,
    task: ServingTask,
}

impl ServedEndpoints {
    /// Begins to serve an endpoint. Waits for the end of a task that served it under a former lease.
    pub(super) async fn begin_serving(&self, lease: &Lease) -> ServedEndpoint {
        let task = ServingTask {
            epoch: lease.epoch,
            lease_end: CancellationToken::new(),
            task_end: CancellationToken::new(),
        };
        let former = self.0.insert(lease.key.clone(), task.clone());
        let served = ServedEndpoint {
            serving: Arc::clone(&self.0),
            lane: lease.key.clone(),
            task,
        };
        if let Some(former) = former {
            former.lease_end.cancel();
            former.task_end.cancelled().await;
        }
        served
    }
}

impl ServedEndpoint {
    /// Returns the token that is cancelled when the endpoint is leased again.
    pub(super) fn lease_end(&self) -> CancellationToken {
        self.task.lease_end.clone()
    }
}

impl Drop for ServedEndpoint {
    fn drop(&mut self) {
        self.serving
            .remove_if(&self.lane, |_, task| task.epoch == self.task.epoch);
        self.task.task_end.cancel();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::store::lanes::LaneKind;

    fn lease(key: &str, epoch: i64) -> Lease {
        Lease {
            kind: LaneKind::Endpoint,
            key: key.to_owned(),
            epoch,
        }
    }

    #[tokio::test]
    async fn an_endpoint_is_served_again_when_its_former_task_has_ended() {
        let serving = ServedEndpoints::default();
        let former = serving.begin_serving(&lease("7", 1)).await;
        let other = serving.begin_serving(&lease("8", 1)).await;
        let next_lease = lease("7", 2);
        let mut next = Box::pin(serving.begin_serving(&next_lease));
        assert!(
            next.as_mut().now_or_never().is_none(),
            "the former task has not ended"
        );
        assert!(former.lease_end().is_cancelled() && !other.lease_end().is_cancelled());
        drop(former);
        let next = next.await;
        assert!(!next.lease_end().is_cancelled());
        drop((next, other));
        assert!(serving.0.is_empty());
    }
}
