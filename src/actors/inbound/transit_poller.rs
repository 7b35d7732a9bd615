//! Polls the authority's list of invoices in transit, to find invoices about which no notice arrived. A cursor in the
//! database marks how far the list was read. Only one replica polls at a time.

use std::collections::{HashMap, HashSet};
use std::slice::from_ref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use authority_client::{AuthorityFailure, PullQuery};
use database::StoreError;
use jiff::{SignedDuration, Timestamp};
use timing::clock::SharedClock;

use crate::actors::dispatch::WorkStatus;
use crate::actors::inbound::addressee::{InboundInvoices, NoticeError};
use crate::domain::invoice::irn::Irn;
use crate::domain::supplier_invoice::parse_foreign_irn;
use crate::store::lanes::leases::{self, LaneRelease};
use crate::store::lanes::{self, IfLocked, LaneKind, LanesToWake, Lease};
use crate::store::operations::pull_cursors::{self, PullCursor};

/// The key of the only lane of kind `Pull`.
const LANE: &str = "transit";
/// Each poll starts this long before the cursor. The list is ordered by day of signature, so an invoice signed three
/// days ago and transmitted today comes before the cursor.
const OVERLAP: SignedDuration = SignedDuration::from_hours(3 * 24);
/// The interval between two sweeps, which read the whole list of invoices in transit.
const SWEEP_EVERY: SignedDuration = SignedDuration::from_hours(24);
/// A sweep reads acknowledged invoices only from this far back, because the authority lists them for ever.
const SWEEP_LOOKBACK: SignedDuration = SignedDuration::from_hours(31 * 24);
/// A withheld invoice is tried again after this time, because its buyer may be verified by then.
const WITHHELD_RETRY: SignedDuration = SignedDuration::from_mins(5);
/// An invoice whose buyer is unknown, or whose document cannot be read, is tried again after this time: the buyer may
/// be onboarded by then, and the authority may have another document.
const UNKNOWN_RETRY: SignedDuration = SignedDuration::from_hours(1);
/// The maximum number of lines processed in one poll.
const POLL_LINES_MAX: usize = 500;
/// A poll ends after this many consecutive failures.
const FAILURES_MAX: usize = 5;

#[derive(Clone)]
pub struct TransitPoller {
    inbound: Arc<InboundInvoices>,
    clock: SharedClock,
    /// The interval between polls.
    every: Duration,
    history: Arc<Mutex<LineHistory>>,
}

/// The tries of this process at the lines of the list. A lost entry only means that the line is processed again.
#[derive(Debug, Default)]
struct LineHistory {
    /// The lines that need no processing now, each with the time of the next try; `None` if the line is done.
    processed: HashMap<TransitLine, Option<Timestamp>>,
    /// The lines of which the last try failed or led to nothing. Most are invoices to buyers who are not our taxpayers.
    failed: HashSet<TransitLine>,
}

/// A line of the list: the IRN of an invoice, and whether the invoice is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct TransitLine {
    irn: Irn,
    is_delivered: bool,
}

/// The result of one poll.
enum PollResult {
    /// The whole list was processed. The value is the new cursor, which is then stored.
    Done(PullCursor),
    /// The list had more new lines than one poll processes, so the next poll is due at once.
    MoreDue,
    /// The list could not be read, or too many lines failed in succession.
    Interrupted,
}

impl TransitPoller {
    pub fn new(inbound: Arc<InboundInvoices>, clock: SharedClock, every: Duration) -> Self {
        Self {
            inbound,
            clock,
            every,
            history: Arc::default(),
        }
    }

    /// Makes a poll due when the process starts, because notices may have been missed before.
    pub async fn ensure_scheduled(&self) -> Result<(), StoreError> {
        let tx = self.inbound.store.begin().await?;
        lanes::wake(
            &tx,
            LaneKind::Pull,
            &[LANE.to_owned()],
            LanesToWake::WithoutHolder,
        )
        .await?;
        tx.commit().await
    }

    /// Polls, stores the new cursor and releases the lane until the next poll. If lines are left over, the next poll is
    /// due at once. If another replica takes over the lease, it processes the same lines again, and that is harmless.
    pub async fn work(&self, lease: &Lease) -> Result<WorkStatus, StoreError> {
        let store = &self.inbound.store;
        let result = self.poll_from(pull_cursors::load(store).await?).await;
        let tx = store.begin().await?;
        leases::fence(&tx, from_ref(lease), IfLocked::Await)
            .await?
            .require_held(lease)?;
        if let PollResult::Done(cursor) = &result {
            pull_cursors::save(&tx, *cursor).await?;
        }
        let delay = if matches!(result, PollResult::MoreDue) {
            Duration::ZERO
        } else {
            self.every
        };
        leases::release(&tx, &[LaneRelease::new(lease, Some(delay))]).await?;
        tx.commit().await?;
        Ok(WorkStatus::Released)
    }

    async fn poll_from(&self, cursor: PullCursor) -> PollResult {
        let now = self.clock.now();
        let mut after = PullCursor {
            pulled_at: Some(now),
            ..cursor
        };
        let recent = cursor
            .pulled_at
            .map_or(moment_before(now, SWEEP_LOOKBACK), |at| {
                moment_before(at, OVERLAP)
            });
        let mut lines = match self.read_lines(Some(recent), recent).await {
            Ok(lines) => lines,
            Err(failure) => {
                tracing::warn!(%failure, "failed to read the list of invoices in transit; will retry");
                return PollResult::Interrupted;
            }
        };
        if cursor
            .swept_at
            .is_none_or(|at| at <= moment_before(now, SWEEP_EVERY) || at > now)
        {
            match self
                .read_lines(None, moment_before(now, SWEEP_LOOKBACK))
                .await
            {
                Ok(swept) => {
                    after.swept_at = Some(now);
                    lines.extend(swept);
                }
                Err(failure) => {
                    tracing::warn!(%failure, "failed to sweep the list of invoices in transit; will retry");
                }
            }
        }
        let unprocessed = self.lock_history().unprocessed_lines(lines, now);
        self.process_lines(unprocessed, after).await
    }

    /// Reads two lists and joins them: the invoices that are still in transit and those already acknowledged. Each has
    /// the invoices signed on the given day or later; without `in_transit_since`, all invoices in transit.
    async fn read_lines(
        &self,
        in_transit_since: Option<Timestamp>,
        acknowledged_since: Timestamp,
    ) -> Result<HashSet<TransitLine>, AuthorityFailure> {
        let mut lines = HashSet::new();
        for (is_delivered, since) in [(false, in_transit_since), (true, Some(acknowledged_since))] {
            let from = since.map(|at| at.strftime("%Y-%m-%d").to_string());
            let query = PullQuery {
                confirmed: Some(is_delivered),
                from,
                to: None,
            };
            let listed = self.inbound.authority.list_in_transit(&query).await?;
            // A line without a valid IRN belongs to none of our taxpayers.
            let irns = listed
                .iter()
                .filter_map(|line| parse_foreign_irn(&line.irn));
            lines.extend(irns.map(|irn| TransitLine { irn, is_delivered }));
        }
        Ok(lines)
    }

    /// Processes lines one by one. `FAILURES_MAX` failures in succession end the poll.
    async fn process_lines(&self, lines: Vec<TransitLine>, after: PullCursor) -> PollResult {
        // Only new lines make the next poll due at once. Lines of which the last try failed come last; many of them are
        // due each hour, and they can wait for the next regular poll.
        let is_more_due = lines
            .get(POLL_LINES_MAX)
            .is_some_and(|line| !self.lock_history().failed.contains(line));
        let mut failures = 0;
        for line in lines.into_iter().take(POLL_LINES_MAX) {
            let processed = self
                .inbound
                .process_line(&line.irn, line.is_delivered)
                .await;
            if let Err(failure) = &processed
                && !matches!(failure, NoticeError::UnknownInvoice | NoticeError::Withheld)
            {
                tracing::warn!(irn = %line.irn, %failure, "failed to process an invoice in transit; will retry");
            }
            let now = self.clock.now();
            let is_settled = self.lock_history().record_try(line, &processed, now);
            failures = if is_settled { 0 } else { failures + 1 };
            if failures == FAILURES_MAX {
                return PollResult::Interrupted;
            }
        }
        if is_more_due {
            PollResult::MoreDue
        } else {
            PollResult::Done(after)
        }
    }

    fn lock_history(&self) -> MutexGuard<'_, LineHistory> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineHistory {
    /// Returns the lines that are new or due for another try. Those that were tried before come last, so that they do
    /// not hold up the others. Forgets lines that are no longer listed.
    fn unprocessed_lines(
        &mut self,
        lines: HashSet<TransitLine>,
        now: Timestamp,
    ) -> Vec<TransitLine> {
        let latest = now.saturating_add(UNKNOWN_RETRY).unwrap_or(Timestamp::MAX);
        self.processed.retain(|line, again| {
            let is_later = again.is_none_or(|at| now < at && at <= latest);
            lines.contains(line) && is_later
        });
        self.failed.retain(|line| lines.contains(line));
        let mut unprocessed: Vec<_> = lines
            .into_iter()
            .filter(|line| !self.processed.contains_key(line))
            .collect();
        unprocessed.sort_by_key(|line| self.failed.contains(line));
        unprocessed
    }

    /// Records a try at a line. Returns false if it failed for a reason that may concern other lines as well.
    fn record_try(
        &mut self,
        line: TransitLine,
        result: &Result<(), NoticeError>,
        now: Timestamp,
    ) -> bool {
        let again = match result {
            Ok(()) => {
                self.failed.remove(&line);
                None
            }
            Err(unresolved) => {
                self.failed.insert(line.clone());
                let Some(wait) = retry_wait(unresolved) else {
                    return false;
                };
                now.saturating_add(wait).ok()
            }
        };
        self.processed.insert(line, again);
        true
    }
}

/// Returns how long a line waits for its next try if the authority's answer gives no usable document for this line.
/// `None` if the line failed for a reason that may concern other lines as well.
fn retry_wait(unresolved: &NoticeError) -> Option<SignedDuration> {
    match unresolved {
        NoticeError::Withheld => Some(WITHHELD_RETRY),
        NoticeError::UnknownInvoice
        | NoticeError::Undecryptable(_)
        | NoticeError::WrongDocument(_) => Some(UNKNOWN_RETRY),
        NoticeError::Busy
        | NoticeError::TimedOut
        | NoticeError::Authority(_)
        | NoticeError::Taxpayer(_) => None,
    }
}

fn moment_before(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.saturating_sub(by).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use authority_client::CryptoError;
    use serde_json::json;

    use super::*;
    use crate::domain::supplier_invoice::SupplierDocument;

    fn line(no: u32) -> TransitLine {
        TransitLine {
            irn: Irn::parse(&format!("INV{no}-94AD90FB-20260115")).unwrap(),
            is_delivered: false,
        }
    }

    #[test]
    fn a_line_that_fails_waits_or_comes_last() {
        let now = Timestamp::UNIX_EPOCH;
        let wrong = SupplierDocument::from_document(&line(0).irn, json!({})).unwrap_err();
        for (result, is_settled, waits_for) in [
            (Ok(()), true, None),
            (
                Err(NoticeError::Withheld),
                true,
                Some(SignedDuration::from_mins(5)),
            ),
            (
                Err(NoticeError::UnknownInvoice),
                true,
                Some(SignedDuration::from_hours(1)),
            ),
            (
                Err(NoticeError::Undecryptable(CryptoError::WrongKey)),
                true,
                Some(SignedDuration::from_hours(1)),
            ),
            (
                Err(NoticeError::WrongDocument(wrong)),
                true,
                Some(SignedDuration::from_hours(1)),
            ),
            (
                Err(NoticeError::Authority(AuthorityFailure::Paused)),
                false,
                None,
            ),
            (Err(NoticeError::TimedOut), false, None),
        ] {
            let listed: HashSet<_> = (0..9).map(line).collect();
            let mut history = LineHistory::default();
            for no in 0..8 {
                let recorded = history.record_try(line(no), &result, now);
                assert_eq!(recorded, is_settled, "{result:?}");
            }
            let soon = history.unprocessed_lines(listed.clone(), now);
            assert_eq!(soon.first(), Some(&line(8)), "{result:?}");
            assert_eq!(soon.len(), if is_settled { 1 } else { 9 }, "{result:?}");
            if let Some(wait) = waits_for {
                let due = history.unprocessed_lines(listed.clone(), now + wait);
                assert_eq!(due.first(), Some(&line(8)), "a new line is first");
                assert_eq!(due.len(), 9, "{result:?}");
            }
            history.unprocessed_lines(HashSet::new(), now);
            assert!(history.failed.is_empty() && history.processed.is_empty());
        }
    }

    #[test]
    fn a_line_that_succeeds_after_a_failure_is_done() {
        let now = Timestamp::UNIX_EPOCH;
        let mut history = LineHistory::default();
        assert!(!history.record_try(line(1), &Err(NoticeError::Busy), now));
        assert!(history.record_try(line(1), &Ok(()), now));
        assert!(history.failed.is_empty());
        let listed = HashSet::from([line(1)]);
        assert!(history.unprocessed_lines(listed, now).is_empty());
    }
}
