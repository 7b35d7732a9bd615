//! Deletes expired idempotency keys in small batches. Replicas may do this at once: each skips locked rows.

use std::time::Duration;

use crate::domain::kernel::clock::SharedClock;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::idempotency;

pub const SWEEP_EVERY: Duration = Duration::from_mins(1);
/// The maximum number of rows deleted in one transaction. It is small, so that other writers do not wait long.
const ROWS_MAX: u64 = 500;
/// The pause between two batches of a round.
const PAUSE: Duration = Duration::from_millis(50);

/// Deletes one batch of expired keys. Returns the wait before the next batch if there may be more.
pub async fn sweep(store: &Store, clock: &SharedClock) -> Result<Option<Duration>, StoreError> {
    let is_more = idempotency::sweep(store, clock.now(), ROWS_MAX).await?;
    Ok(is_more.then_some(PAUSE))
}
