//! Waits for events that must happen. Deadlines are generous: they end a test that hangs, and measure nothing.

use std::time::{Duration, Instant};

use tokio::time::sleep;

/// The longest time that a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Calls `look` until it returns a value. Panics after [`PATIENCE`].
pub async fn eventually<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, look).await
}

/// Calls `look` until it returns a value. Panics after the time `patience`.
pub async fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(
            begun.elapsed() < patience,
            "in vain: waited {patience:?} for {what}"
        );
        sleep(LOOK_EVERY).await;
    }
}
