//! Keeps the requests of accounts for the request log. Requests are first kept in memory, and periodic work writes them
//! to the database in batches, so that no request waits for the log. A process that is killed loses at most the
//! requests that it kept since the last batch.
//!
//! Good requests are those that did not fail. In each second, many failed requests of an account are kept, but only a
//! few good ones. The numbers of failed requests and of kept bodies are also limited per hour, so that no client fills
//! the disk. When the memory is full, the oldest good request is dropped or, if there is none, the oldest failed one.
//! Dropped good requests and dropped failed ones are counted separately (`dropped_counts`).

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use database::StoreError;
use jiff::{SignedDuration, Timestamp};

use crate::domain::access::api_key::KeyOwner;
use crate::domain::request_log::LoggedRequest;
use crate::store::Store;
use crate::store::operations::request_log;

pub const WRITE_EVERY: Duration = Duration::from_secs(1);
/// The pause between two batches. It leaves the database free for other writers.
const PAUSE: Duration = Duration::from_millis(50);
/// The maximum number of requests that one transaction writes.
const BATCH_MAX: usize = 100;
/// The maximum number of requests in memory, and of bytes that their bodies may take.
const WAITING_MAX: usize = 4_096;
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The maximum number of failures that are kept per account and second, and of those that are kept with their bodies.
/// Without a bound, one account's failures would push out those of others.
const FAILURES: u32 = 100;
const FAILURES_WITH_BODIES: u32 = 20;
/// The maximum number of failures that are kept per account and hour, and of those that are kept with their bodies. The
/// second maximum also holds for good writes. Without these, a client that sends all the time would fill the disk.
const FAILURES_PER_HOUR: u32 = 10_000;
const BODIES_PER_HOUR: u32 = 1_000;
const SECONDS_PER_HOUR: i64 = 3_600;
/// The maximum numbers of good writes and of good reads that are kept per account and second. Reads are kept without
/// bodies.
const WRITES: u32 = 5;
const READS: u32 = 1;
/// The maximum number of good requests of all accounts that are kept per second. With 100 instead, the creation of
/// invoices at full load was 6 % slower.
const GOOD: u32 = 25;

/// The kinds of requests that the log treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Failed,
    GoodWrite,
    GoodRead,
}

/// The parts of a request that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptDetail {
    WithBodies,
    WithoutBodies,
}

/// The requests that are not written yet.
#[derive(Debug)]
pub struct RequestLog {
    /// The time for which a request stays in the log; `None` if there is no log.
    keep: Option<SignedDuration>,
    waiting: Mutex<WaitingRequests>,
    /// Held while a batch is written, so that a reader can wait for the requests in it.
    writing: tokio::sync::Mutex<()>,
    dropped_good: AtomicU64,
    dropped_failed: AtomicU64,
}

#[derive(Debug, Default)]
struct WaitingRequests {
    good: VecDeque<LoggedRequest>,
    failed: VecDeque<LoggedRequest>,
    bytes: usize,
    second: i64,
    good_in_second: u32,
    accounts: HashMap<KeyOwner, CountsInSecond>,
    hour: i64,
    accounts_in_hour: HashMap<KeyOwner, CountsInHour>,
}

/// Requests that were taken out of memory to be written. When this value is dropped, the requests that are not written
/// yet go back into memory. This happens after an error, and if the client that reads the log disconnects during the
/// write.
struct TakenBatch<'l> {
    log: &'l RequestLog,
    requests: Vec<LoggedRequest>,
}

/// The numbers of requests of an account in the present second: of all failures, and of the good requests that are
/// kept.
#[derive(Debug, Default)]
struct CountsInSecond {
    failures: u32,
    writes: u32,
    reads: u32,
}

/// The numbers of requests of an account that are kept in the present hour.
#[derive(Debug, Default)]
struct CountsInHour {
    failures: u32,
    failures_with_bodies: u32,
    writes_with_bodies: u32,
}

impl RequestLog {
    /// Creates a log that keeps requests for this many days (setting `http.request_log_days`); with 0 it keeps none.
    pub fn new(days: u32) -> Self {
        Self {
            keep: (days > 0).then(|| SignedDuration::from_hours(24 * i64::from(days))),
            waiting: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
            dropped_good: AtomicU64::default(),
            dropped_failed: AtomicU64::default(),
        }
    }

    pub fn is_on(&self) -> bool {
        self.keep.is_some()
    }

    /// Returns the time before which requests are deleted.
    pub fn deletion_limit(&self, now: Timestamp) -> Timestamp {
        now.saturating_sub(self.keep.unwrap_or_default())
            .unwrap_or(Timestamp::MIN)
    }

    /// Decides how much of a request of this account is kept; `None` means nothing.
    pub fn decide_kept_detail(
        &self,
        account: KeyOwner,
        kind: RequestKind,
        now: Timestamp,
    ) -> Option<KeptDetail> {
        if !self.is_on() {
            return None;
        }
        let detail = self
            .lock()
            .decide_kept_detail(account, kind, now.as_second());
        if detail.is_none() && kind == RequestKind::Failed {
            self.count_dropped(true);
        }
        detail
    }

    /// Puts a request into memory. Drops older requests if there is no room.
    pub fn push(&self, request: LoggedRequest) {
        let mut waiting = self.lock();
        waiting.bytes += body_bytes(&request);
        if is_failure(&request) {
            waiting.failed.push_back(request);
        } else {
            waiting.good.push_back(request);
        }
        while waiting.is_full() {
            let has_good = waiting.drop_oldest_good_request();
            if !has_good {
                waiting.drop_oldest_failed_request();
            }
            self.count_dropped(!has_good);
        }
    }

    /// Writes one batch. Returns the pause before the next batch if there is more to write. After an error, the
    /// requests go back into memory.
    pub async fn write_batch(&self, store: &Store) -> Result<Option<Duration>, StoreError> {
        let _turn = self.writing.lock().await;
        let mut batch = TakenBatch {
            log: self,
            requests: self.lock().take_batch(),
        };
        if batch.requests.is_empty() {
            return Ok(None);
        }
        match request_log::append(store, &batch.requests).await {
            Ok(()) => batch.requests.clear(),
            // The database would refuse the same batch each time, and the requests behind it would never be written.
            Err(StoreError::Broken(_)) => batch.write_each(store).await?,
            Err(error) => return Err(error),
        }
        Ok((!self.lock().is_empty()).then_some(PAUSE))
    }

    /// Writes the requests in memory, so that a reader finds the requests that this process has answered. After an
    /// error, they are written later.
    pub async fn write_for_reader(&self, store: &Store) {
        if let Err(error) = self.write_all(store).await {
            tracing::warn!(%error, "failed to write the request log before it is read; will retry");
        }
    }

    /// Writes all requests that were in memory at the beginning, and waits for a batch that is being written, so that a
    /// reader sees its own requests.
    pub async fn write_all(&self, store: &Store) -> Result<(), StoreError> {
        let batches = self.lock().len().div_ceil(BATCH_MAX);
        for _ in 0..batches.max(1) {
            self.write_batch(store).await?;
        }
        Ok(())
    }

    /// Returns two counts since the start: good requests that were dropped because the memory was full, and failed
    /// requests that were dropped for the same reason or because their account had too many.
    pub fn dropped_counts(&self) -> [(&'static str, u64); 2] {
        let count = |dropped: &AtomicU64| dropped.load(Ordering::Relaxed);
        [
            ("good", count(&self.dropped_good)),
            ("failed", count(&self.dropped_failed)),
        ]
    }

    fn count_dropped(&self, is_failure: bool) {
        let count = if is_failure {
            &self.dropped_failed
        } else {
            &self.dropped_good
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, WaitingRequests> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TakenBatch<'_> {
    /// Writes the requests one by one, and drops those that the database refuses.
    async fn write_each(&mut self, store: &Store) -> Result<(), StoreError> {
        while let Some(request) = self.requests.first() {
            match request_log::append(store, std::slice::from_ref(request)).await {
                Ok(()) => {}
                Err(StoreError::Broken(_)) => self.log.count_dropped(is_failure(request)),
                Err(error) => return Err(error),
            }
            self.requests.remove(0);
        }
        Ok(())
    }
}

impl Drop for TakenBatch<'_> {
    fn drop(&mut self) {
        for request in self.requests.drain(..) {
            self.log.push(request);
        }
    }
}

impl Default for RequestLog {
    /// Returns a log that keeps nothing.
    fn default() -> Self {
        Self::new(0)
    }
}

impl WaitingRequests {
    fn decide_kept_detail(
        &mut self,
        account: KeyOwner,
        kind: RequestKind,
        second: i64,
    ) -> Option<KeptDetail> {
        if self.second != second {
            self.second = second;
            self.good_in_second = 0;
            self.accounts.clear();
        }
        let hour = second.div_euclid(SECONDS_PER_HOUR);
        if self.hour != hour {
            self.hour = hour;
            self.accounts_in_hour.clear();
        }
        let counted = self.accounts.entry(account).or_default();
        let hourly = self.accounts_in_hour.entry(account).or_default();
        if kind == RequestKind::Failed {
            counted.failures += 1;
            if counted.failures > FAILURES || hourly.failures >= FAILURES_PER_HOUR {
                return None;
            }
            hourly.failures += 1;
            return Some(if counted.failures > FAILURES_WITH_BODIES {
                KeptDetail::WithoutBodies
            } else {
                keep_bodies_up_to_limit(&mut hourly.failures_with_bodies)
            });
        }
        let (count, max, detail) = match kind {
            RequestKind::GoodRead => (&mut counted.reads, READS, KeptDetail::WithoutBodies),
            RequestKind::GoodWrite | RequestKind::Failed => {
                (&mut counted.writes, WRITES, KeptDetail::WithBodies)
            }
        };
        if *count >= max || self.good_in_second >= GOOD {
            return None;
        }
        *count += 1;
        self.good_in_second += 1;
        Some(match detail {
            KeptDetail::WithBodies => keep_bodies_up_to_limit(&mut hourly.writes_with_bodies),
            KeptDetail::WithoutBodies => KeptDetail::WithoutBodies,
        })
    }

    fn len(&self) -> usize {
        self.good.len() + self.failed.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn is_full(&self) -> bool {
        self.len() > WAITING_MAX || self.bytes > WAITING_BYTES_MAX
    }

    /// Drops the oldest good request. Returns false if there is none.
    fn drop_oldest_good_request(&mut self) -> bool {
        let dropped = self.good.pop_front();
        self.subtract_body_bytes(dropped.as_ref());
        dropped.is_some()
    }

    fn drop_oldest_failed_request(&mut self) {
        let dropped = self.failed.pop_front();
        self.subtract_body_bytes(dropped.as_ref());
    }

    /// Takes up to `BATCH_MAX` requests out of memory: the oldest failures and, if there is room, the oldest good ones.
    fn take_batch(&mut self) -> Vec<LoggedRequest> {
        let failed = self.failed.len().min(BATCH_MAX);
        let good = self.good.len().min(BATCH_MAX - failed);
        let failed = self.failed.drain(..failed);
        let batch: Vec<_> = failed.chain(self.good.drain(..good)).collect();
        for request in &batch {
            self.subtract_body_bytes(Some(request));
        }
        batch
    }

    fn subtract_body_bytes(&mut self, request: Option<&LoggedRequest>) {
        self.bytes -= request.map_or(0, body_bytes);
    }
}

/// Decides whether a request is kept with its bodies. `with_bodies` is the number of such requests that the account has
/// in this hour: below `BODIES_PER_HOUR` it is raised by 1, otherwise the request is kept without its bodies.
fn keep_bodies_up_to_limit(with_bodies: &mut u32) -> KeptDetail {
    if *with_bodies >= BODIES_PER_HOUR {
        return KeptDetail::WithoutBodies;
    }
    *with_bodies += 1;
    KeptDetail::WithBodies
}

fn is_failure(request: &LoggedRequest) -> bool {
    request.status >= 400
}

fn body_bytes(request: &LoggedRequest) -> usize {
    request.request.text.len() + request.response.text.len()
}

#[cfg(test)]
mod tests {
    use database::page::Page;
    use futures_util::FutureExt as _;
    use timing::clock;

    use super::*;
    use crate::domain::access::caller::KeyKind;
    use crate::domain::kernel::ids::TaxpayerId;
    use crate::domain::request_log::{BODY_BYTES_MAX, LoggedBody, RequestOwner};
    use crate::store::operations::request_log::{ReadingAccount, RequestFilter, page_for_reader};
    use crate::store::testing::stores;

    const OWN: TaxpayerId = TaxpayerId(7);

    fn owner(id: i64) -> KeyOwner {
        KeyOwner {
            kind: KeyKind::Taxpayer,
            id,
        }
    }

    fn request(status: u16, body: &str) -> LoggedRequest {
        LoggedRequest {
            id: clock::new_id(),
            at: Timestamp::UNIX_EPOCH,
            caller: RequestOwner {
                taxpayer: Some(OWN),
                integrator: None,
            },
            request_id: "one".into(),
            method: "POST".into(),
            path: "/v1/x".into(),
            route: "/v1/x".into(),
            status,
            error_code: None,
            duration_ms: 1,
            key: "…abcd".into(),
            invoice: None,
            request: LoggedBody::from_json(body.as_bytes(), body.len() as u64),
            response: LoggedBody::without_text(0),
        }
    }

    #[test]
    fn failures_and_good_requests_are_kept_up_to_their_rates() {
        let log = RequestLog::new(7);
        let now = Timestamp::UNIX_EPOCH;
        let kept = |account, kind, count, now| {
            let all: Vec<_> = (0..count)
                .filter_map(|_| log.decide_kept_detail(owner(account), kind, now))
                .collect();
            let whole = all.iter().filter(|one| **one == KeptDetail::WithBodies);
            (whole.count(), all.len())
        };
        assert_eq!(kept(1, RequestKind::Failed, 150, now), (20, 100));
        assert_eq!(log.dropped_counts(), [("good", 0), ("failed", 50)]);
        assert_eq!(kept(1, RequestKind::GoodWrite, 30, now), (5, 5));
        assert_eq!(kept(1, RequestKind::GoodRead, 30, now), (0, 1));
        let others: usize = (2..40)
            .map(|id| kept(id, RequestKind::GoodWrite, 30, now).1)
            .sum();
        assert_eq!(others, 19, "all accounts share these 25");
        let next = now + Duration::from_secs(1);
        assert_eq!(kept(1, RequestKind::GoodRead, 30, next), (0, 1));
        let off = RequestLog::new(0);
        assert_eq!(
            off.decide_kept_detail(owner(1), RequestKind::Failed, now),
            None
        );
    }

    #[test]
    fn an_account_that_sends_all_the_time_keeps_a_bounded_part_of_it() {
        // The kind, then how many of an hour are kept with bodies, and how many in all.
        for (kind, whole, all) in [
            (RequestKind::Failed, 1_000, 10_000),
            (RequestKind::GoodWrite, 1_000, 18_000),
            (RequestKind::GoodRead, 0, 3_600),
        ] {
            let log = RequestLog::new(7);
            for hour in [0, 1] {
                let mut kept = Vec::new();
                for second in 0..SECONDS_PER_HOUR {
                    let now = Timestamp::from_second(hour * SECONDS_PER_HOUR + second).unwrap();
                    let details = (0..30).map(|_| log.decide_kept_detail(owner(1), kind, now));
                    kept.extend(details.flatten());
                }
                let with_bodies = kept.iter().filter(|one| **one == KeptDetail::WithBodies);
                let counts = (with_bodies.count(), kept.len());
                assert_eq!(counts, (whole, all), "{kind:?} in hour {hour}");
            }
            let now = Timestamp::from_second(2 * SECONDS_PER_HOUR - 1).unwrap();
            let other = log.decide_kept_detail(owner(2), kind, now);
            assert!(other.is_some(), "{kind:?} of another account");
        }
    }

    #[test]
    fn at_the_bound_of_the_memory_the_oldest_good_request_goes_first() {
        let full = "x".repeat(BODY_BYTES_MAX);
        for (body, room) in [
            ("", WAITING_MAX),
            (full.as_str(), WAITING_BYTES_MAX / BODY_BYTES_MAX),
        ] {
            let log = RequestLog::new(7);
            log.push(request(200, body));
            for _ in 0..room {
                log.push(request(422, body));
            }
            assert_eq!(log.dropped_counts(), [("good", 1), ("failed", 0)]);
            log.push(request(500, body));
            assert_eq!(log.dropped_counts(), [("good", 1), ("failed", 1)]);
            assert_eq!(log.lock().len(), room);
        }
    }

    #[tokio::test]
    async fn what_was_taken_for_a_reader_that_has_gone_is_written_later() {
        for test in stores().await {
            let log = RequestLog::new(7);
            for status in [200, 422] {
                log.push(request(status, "{}"));
            }
            let is_written = log.write_batch(&test.store).now_or_never().is_some();
            let left = log.lock().len();
            assert_eq!(left, if is_written { 0 } else { 2 });
            log.write_all(&test.store).await.unwrap();
            assert_eq!(log.lock().len(), 0);
            assert_eq!(log.lock().bytes, 0);
            let page = Page {
                number: 1,
                per_page: 1,
            };
            let filter = RequestFilter::default();
            let found =
                page_for_reader(&test.store, ReadingAccount::Taxpayer(OWN), filter, page).await;
            assert_eq!(found.unwrap().1, 2);
            assert_eq!(log.dropped_counts(), [("good", 0), ("failed", 0)]);
            test.store.close().await;
        }
    }

    #[tokio::test]
    async fn what_is_in_memory_is_written_in_batches_and_what_fails_is_written_later() {
        for test in stores().await {
            let log = RequestLog::new(7);
            for _ in 0..BATCH_MAX {
                log.push(request(200, "{}"));
            }
            log.push(request(422, "{}"));
            assert_eq!(log.write_batch(&test.store).await.unwrap(), Some(PAUSE));
            assert_eq!(log.write_batch(&test.store).await.unwrap(), None);
            assert_eq!(log.lock().bytes, 0);
            let page = Page {
                number: 1,
                per_page: 1,
            };
            let reader = ReadingAccount::Taxpayer(OWN);
            let (_, total) = page_for_reader(&test.store, reader, RequestFilter::default(), page)
                .await
                .unwrap();
            assert_eq!(total, BATCH_MAX as u64 + 1);
            log.push(request(422, "{}"));
            let closed = test.store.clone();
            test.store.close().await;
            log.write_batch(&closed).await.unwrap_err();
            assert_eq!(log.lock().len(), 1);
        }
    }
}
