//! The record of every call received, oldest first, bounded.
//!
//! A call is listed when it arrives, as `pending`, and its line is completed when its handling ends, however it
//! ends: the `Recording` completes it when dropped. What was answered is recorded, not whether the caller was still
//! there to read it.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use serde::Serialize;

use crate::clock;
use crate::route::Operation;

/// How many calls are remembered.
pub(crate) const CALLS_MAX: usize = 100_000;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Pending,
    Answered(u16),
    /// The connection was broken on purpose.
    Dropped,
    /// Its handling was cut short, as by a stop.
    Abandoned,
}

/// One call, as `GET /sandbox/calls` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct CallRecord {
    pub method: String,
    pub path: String,
    /// Absent for a path the authority does not know.
    pub operation: Option<Operation>,
    pub irn: Option<String>,
    /// The HTTP status, or "pending", "dropped" or "abandoned".
    #[serde(rename = "status", serialize_with = "show_ending")]
    pub(crate) ending: Ending,
    /// RFC 3339, UTC: when the call arrived.
    pub at: String,
    pub duration_ms: u64,
}

impl CallRecord {
    /// Whether the authority has it in hand.
    pub fn is_pending(&self) -> bool {
        self.ending == Ending::Pending
    }

    /// The status answered; nothing when the caller got none.
    pub fn status(&self) -> Option<u16> {
        match self.ending {
            Ending::Answered(status) => Some(status),
            Ending::Pending | Ending::Dropped | Ending::Abandoned => None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn show_ending<S: serde::Serializer>(ending: &Ending, serializer: S) -> Result<S::Ok, S::Error> {
    match ending {
        Ending::Answered(status) => serializer.serialize_u16(*status),
        Ending::Pending => serializer.serialize_str("pending"),
        Ending::Dropped => serializer.serialize_str("dropped"),
        Ending::Abandoned => serializer.serialize_str("abandoned"),
    }
}

#[derive(Default)]
pub(crate) struct CallLog(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    /// The number of the first line still held.
    first: u64,
    records: VecDeque<CallRecord>,
}

impl Lines {
    fn push(&mut self, record: CallRecord) -> u64 {
        if self.records.len() == CALLS_MAX {
            self.records.pop_front();
            self.first += 1;
        }
        self.records.push_back(record);
        self.first + self.records.len() as u64 - 1
    }

    /// A line, unless it was pushed out or cleared meanwhile.
    fn line(&mut self, number: u64) -> Option<&mut CallRecord> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.records.get_mut(index)
    }

    fn clear(&mut self) {
        self.first += self.records.len() as u64;
        self.records.clear();
    }
}

impl CallLog {
    /// Lists a call that has just arrived.
    pub(crate) fn begin(&self, request: &Arrival<'_>) -> Recording<'_> {
        let line = self.lock().push(CallRecord {
            method: request.method.to_owned(),
            path: request.path.to_owned(),
            operation: request.operation,
            irn: request.irn.map(str::to_owned),
            ending: Ending::Pending,
            at: clock::now().to_string(),
            duration_ms: 0,
        });
        Recording { log: self, line, ending: Ending::Abandoned, started: Instant::now() }
    }

    pub(crate) fn all(&self) -> Vec<CallRecord> {
        self.lock().records.iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of a call when it arrives.
pub(crate) struct Arrival<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) operation: Option<Operation>,
    pub(crate) irn: Option<&'a str>,
}

/// A call in progress.
pub(crate) struct Recording<'a> {
    log: &'a CallLog,
    line: u64,
    pub(crate) ending: Ending,
    started: Instant,
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(record) = self.log.lock().line(self.line) {
            record.ending = self.ending;
            record.duration_ms = duration_ms;
        }
    }
}
