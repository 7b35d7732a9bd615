//! The end of the process, in two phases. Once a stop is announced, `/health/ready` says so, so that a load balancer
//! sends no more requests; requests are still served. Once the stop is requested, live streams of the console end, and
//! each response closes its connection.

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum StopPhase {
    Serving,
    Announced,
    Requested,
}

#[derive(Debug, Clone)]
pub struct StopSignal(watch::Sender<StopPhase>);

impl Default for StopSignal {
    fn default() -> Self {
        Self(watch::Sender::new(StopPhase::Serving))
    }
}

impl StopSignal {
    /// Reports the process as not ready, so that it gets no new requests. Requests that still arrive are served until
    /// a stop is requested.
    pub fn announce_stop(&self) {
        self.0.send_replace(StopPhase::Announced);
    }

    pub fn request_stop(&self) {
        self.0.send_replace(StopPhase::Requested);
    }

    /// True once a stop is announced, also after it is requested.
    pub(crate) fn is_announced(&self) -> bool {
        *self.0.borrow() >= StopPhase::Announced
    }

    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow() == StopPhase::Requested
    }

    /// Waits until a stop is requested.
    pub(crate) async fn wait_for_stop(&self) {
        let mut phase = self.0.subscribe();
        // The sender is part of `self`, so the wait cannot fail.
        let _ = phase.wait_for(|phase| *phase == StopPhase::Requested).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_is_noticed_before_and_after_it_is_requested() {
        let stopping = StopSignal::default();
        let other = stopping.clone();
        assert!(!stopping.is_announced() && !stopping.is_requested());
        stopping.announce_stop();
        assert!(stopping.is_announced() && !stopping.is_requested());
        tokio::join!(async { other.request_stop() }, stopping.wait_for_stop());
        stopping.wait_for_stop().await;
        assert!(stopping.is_announced() && stopping.is_requested());
    }
}
