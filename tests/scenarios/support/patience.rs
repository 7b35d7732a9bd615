//! Waiting for what must come. Deadlines are generous: they end a scenario that hangs and measure nothing.

use std::time::{Duration, Instant};

use tokio::time::sleep;

pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Looks until there is something to see.
pub(crate) async fn eventually<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, look).await
}

/// The same with a patience of its own, for what is large.
pub(crate) async fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(begun.elapsed() < patience, "in vain: waited {patience:?} for {what}");
        sleep(LOOK_EVERY).await;
    }
}
