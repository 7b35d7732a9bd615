//! The request to stop the process. Once it is made, live streams of the console end, and each response closes its
//! connection.

use tokio::sync::watch;

#[derive(Debug, Clone)]
pub struct StopSignal(watch::Sender<bool>);

impl Default for StopSignal {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl StopSignal {
    pub fn request_stop(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until a stop is requested.
    pub(crate) async fn wait_for_stop(&self) {
        let mut requested = self.0.subscribe();
        // The sender is part of `self`, so the wait cannot fail.
        let _ = requested.wait_for(|requested| *requested).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_is_noticed_before_and_after_it_is_requested() {
        let stopping = StopSignal::default();
        let other = stopping.clone();
        assert!(!stopping.is_requested());
        tokio::join!(async { other.request_stop() }, stopping.wait_for_stop());
        stopping.wait_for_stop().await;
        assert!(stopping.is_requested());
    }
}
