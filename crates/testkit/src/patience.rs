//! Waits for events that must happen. Deadlines are generous: they end a test that hangs, and measure nothing.

use std::time::{Duration, Instant};

use tokio::time::sleep;

/// The longest time that a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(90);
/// The pauses between two checks. They begin short, because most events come soon, and then grow, because each check
/// takes time from the service.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(100);

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
        let waited = begun.elapsed();
        assert!(waited < patience, "in vain: waited {patience:?} for {what}");
        sleep((waited / 25).clamp(PAUSE_MIN, PAUSE_MAX)).await;
    }
}
