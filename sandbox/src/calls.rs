//! The record of every call received, oldest first, bounded.
//!
//! A call is recorded when its handling ends, however it ends: the `Recording` writes itself down when dropped,
//! so a caller that hung up leaves a line as well, with the status `abandoned`.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use jiff::Timestamp;
use serde::Serialize;

use crate::{clock, route::Operation};

/// How many calls are remembered.
pub(crate) const CALLS_MAX: usize = 100_000;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Answered(u16),
    /// The connection was broken on purpose.
    Dropped,
    /// The caller hung up before the answer.
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
    /// The HTTP status, or "dropped" or "abandoned".
    #[serde(rename = "status", serialize_with = "show_ending")]
    pub(crate) ending: Ending,
    /// RFC 3339, UTC: when the call arrived.
    pub at: String,
    pub duration_ms: u64,
}

impl CallRecord {
    /// The status answered; nothing when the caller got none.
    pub fn status(&self) -> Option<u16> {
        match self.ending {
            Ending::Answered(status) => Some(status),
            Ending::Dropped | Ending::Abandoned => None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn show_ending<S: serde::Serializer>(ending: &Ending, serializer: S) -> Result<S::Ok, S::Error> {
    match ending {
        Ending::Answered(status) => serializer.serialize_u16(*status),
        Ending::Dropped => serializer.serialize_str("dropped"),
        Ending::Abandoned => serializer.serialize_str("abandoned"),
    }
}

#[derive(Default)]
pub(crate) struct CallLog {
    records: Mutex<VecDeque<CallRecord>>,
}

impl CallLog {
    pub(crate) fn begin(&self, method: &str, path: &str) -> Recording<'_> {
        Recording {
            log: self,
            method: method.to_owned(),
            path: path.to_owned(),
            operation: None,
            irn: None,
            ending: Ending::Abandoned,
            at: clock::now(),
            started: Instant::now(),
        }
    }

    pub(crate) fn all(&self) -> Vec<CallRecord> {
        self.lock().iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn push(&self, record: CallRecord) {
        let mut records = self.lock();
        if records.len() == CALLS_MAX {
            records.pop_front();
        }
        records.push_back(record);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<CallRecord>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in progress.
pub(crate) struct Recording<'a> {
    log: &'a CallLog,
    method: String,
    path: String,
    pub(crate) operation: Option<Operation>,
    pub(crate) irn: Option<String>,
    pub(crate) ending: Ending,
    at: Timestamp,
    started: Instant,
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.log.push(CallRecord {
            method: std::mem::take(&mut self.method),
            path: std::mem::take(&mut self.path),
            operation: self.operation,
            irn: self.irn.take(),
            ending: self.ending,
            at: self.at.to_string(),
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
    }
}
