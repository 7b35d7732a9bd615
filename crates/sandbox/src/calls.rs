//! The log of the received calls, oldest first. A call is `pending` until its `Recording` is dropped.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use serde::Serialize;

use crate::clock;
use crate::route::Operation;

/// The largest number of calls kept; the oldest call is dropped first.
pub(crate) const CALLS_MAX: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEnding {
    Pending,
    Answered(u16),
    /// A fault broke the connection.
    Dropped,
    /// Handling was cancelled, for example because the simulator stopped.
    Abandoned,
}

/// One call, as `GET /sandbox/calls` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct CallRecord {
    pub method: String,
    pub path: String,
    /// `None` if the path is unknown.
    pub operation: Option<Operation>,
    pub irn: Option<String>,
    /// The HTTP status, or "pending", "dropped" or "abandoned".
    #[serde(rename = "status", serialize_with = "serialize_ending")]
    pub(crate) ending: CallEnding,
    /// The time of arrival, as RFC 3339 in UTC.
    pub at: String,
    pub duration_ms: u64,
}

impl CallRecord {
    pub fn is_pending(&self) -> bool {
        self.ending == CallEnding::Pending
    }

    pub fn status(&self) -> Option<u16> {
        match self.ending {
            CallEnding::Answered(status) => Some(status),
            CallEnding::Pending | CallEnding::Dropped | CallEnding::Abandoned => None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn serialize_ending<S: serde::Serializer>(
    ending: &CallEnding,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match ending {
        CallEnding::Answered(status) => serializer.serialize_u16(*status),
        CallEnding::Pending => serializer.serialize_str("pending"),
        CallEnding::Dropped => serializer.serialize_str("dropped"),
        CallEnding::Abandoned => serializer.serialize_str("abandoned"),
    }
}

#[derive(Default)]
pub(crate) struct CallLog(Mutex<LoggedCalls>);

#[derive(Default)]
struct LoggedCalls {
    /// The number of the oldest entry that is still kept.
    first: u64,
    records: VecDeque<CallRecord>,
}

impl LoggedCalls {
    fn push(&mut self, record: CallRecord) -> u64 {
        if self.records.len() == CALLS_MAX {
            self.records.pop_front();
            self.first += 1;
        }
        self.records.push_back(record);
        self.first + self.records.len() as u64 - 1
    }

    /// Returns the entry with this number; `None` if it was evicted or cleared.
    fn find_record(&mut self, number: u64) -> Option<&mut CallRecord> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.records.get_mut(index)
    }

    fn clear(&mut self) {
        self.first += self.records.len() as u64;
        self.records.clear();
    }
}

impl CallLog {
    /// Adds a call that has just arrived. Its ending is "pending" until the returned `Recording` is dropped.
    pub(crate) fn begin(&self, request: &ArrivedCall<'_>) -> Recording<'_> {
        let line = self.lock().push(CallRecord {
            method: request.method.to_owned(),
            path: request.path.to_owned(),
            operation: request.operation,
            irn: request.irn.map(str::to_owned),
            ending: CallEnding::Pending,
            at: clock::now().to_string(),
            duration_ms: 0,
        });
        Recording {
            log: self,
            line,
            ending: CallEnding::Abandoned,
            started: Instant::now(),
        }
    }

    pub(crate) fn all(&self) -> Vec<CallRecord> {
        let log = self.lock();
        log.records.iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, LoggedCalls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a log entry that is known when the call arrives.
pub(crate) struct ArrivedCall<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) operation: Option<Operation>,
    pub(crate) irn: Option<&'a str>,
}

/// A call in progress. Dropping this value writes the call's ending into the log.
pub(crate) struct Recording<'a> {
    log: &'a CallLog,
    line: u64,
    pub(crate) ending: CallEnding,
    started: Instant,
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(record) = self.log.lock().find_record(self.line) {
            record.ending = self.ending;
            record.duration_ms = duration_ms;
        }
    }
}
