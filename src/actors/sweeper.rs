//! Deletes expired idempotency keys, old quarantined commands, abandoned uploads, old requests, old mails and the
//! remains of deleted endpoints in small batches. Several replicas may do this at the same time: each skips the rows
//! that another has locked, or finds them gone.

use std::time::Duration;

use database::StoreError;
use jiff::SignedDuration;
use timing::clock::SharedClock;

use crate::actors::request_log::RequestLog;
use crate::store::Store;
use crate::store::idempotency;
use crate::store::invoices::import_pieces;
use crate::store::operations::{mails, notices, quarantine, request_log};
use crate::store::webhooks::removed_endpoints;

pub const SWEEP_EVERY: Duration = Duration::from_mins(1);
/// The maximum number of rows deleted in one transaction. It is small, so that other writers do not wait long.
const ROWS_MAX: u64 = 500;
/// The pause between two batches of a round.
const PAUSE: Duration = Duration::from_millis(50);
/// A quarantined command is kept for this long after it was replayed or dropped.
const QUARANTINE_KEPT_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Mails, and notices from which no mail was made, are kept for this long.
const MAILS_KEPT_FOR: SignedDuration = SignedDuration::from_hours(14 * 24);
/// The pieces of an upload that was not completed are kept for this long.
const UPLOAD_KEPT_FOR: SignedDuration = SignedDuration::from_hours(24);
/// The maximum number of pieces deleted in one transaction. It is small, because a piece may be large.
const PIECES_MAX: u64 = 20;

/// Deletes one batch. Returns the pause before the next batch if there may be more to delete, else `None`.
pub async fn sweep(
    store: &Store,
    clock: &SharedClock,
    requests: &RequestLog,
) -> Result<Option<Duration>, StoreError> {
    let now = clock.now();
    let has_keys = idempotency::sweep(store, now, ROWS_MAX).await?;
    let has_commands = quarantine::sweep(store, now - QUARANTINE_KEPT_FOR, ROWS_MAX).await?;
    let old = now - MAILS_KEPT_FOR;
    let has_mails = mails::sweep(store, old, ROWS_MAX).await?;
    let has_notices = notices::sweep(store, old, ROWS_MAX).await?;
    let has_pieces = import_pieces::sweep(store, now - UPLOAD_KEPT_FOR, PIECES_MAX).await?;
    let has_requests = request_log::sweep(store, requests.deletion_limit(now), ROWS_MAX).await?;
    let has_deliveries = removed_endpoints::sweep(store, ROWS_MAX).await?;
    let has_some = [
        has_keys,
        has_commands,
        has_mails,
        has_notices,
        has_pieces,
        has_requests,
        has_deliveries,
    ];
    Ok(has_some.contains(&true).then_some(PAUSE))
}
