//! The outcome of one act of an operator on many things, and its entry in the audit. Each thing has an entry of its own.

use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::audit;

/// The maximum number of things that one act moves. A caller repeats the act until nothing matches.
pub(crate) const SUBJECTS_MAX: u64 = 1_000;

/// A thing that was not moved, with the reason.
#[derive(Debug)]
pub(crate) struct BulkRefusal {
    pub(crate) id: String,
    pub(crate) message: String,
}

#[derive(Debug, Default)]
pub(crate) struct BulkOutcome {
    /// The number of things that were moved.
    pub(crate) moved: usize,
    pub(crate) refusals: Vec<BulkRefusal>,
    /// The failure that ended the act early. What was moved stays moved.
    pub(crate) failure: Option<ApiError>,
}

/// An act on many things as the audit names it.
pub(crate) struct BulkAct<'a> {
    pub(crate) action: AuditAction,
    /// The act, such as `retry`. It is the subject of the entry.
    pub(crate) word: &'a str,
    /// The filter that chose the things, or their number if each was chosen by itself.
    pub(crate) selection: String,
}

impl BulkOutcome {
    /// Adds the result for one thing, which stands for `count` of them.
    pub(crate) fn add(&mut self, id: &impl ToString, count: usize, result: Result<(), ApiError>) {
        match result {
            Ok(()) => self.moved += count,
            Err(error) if error.status.is_client_error() => {
                self.refuse(id, error.message.to_string());
            }
            Err(error) => self.failure = Some(error),
        }
    }

    pub(crate) fn refuse(&mut self, id: &impl ToString, message: String) {
        self.refusals.push(BulkRefusal {
            id: id.to_string(),
            message,
        });
    }

    /// Records the act with its selection and its counts.
    pub(crate) async fn record(
        &self,
        state: &ApiState,
        act: BulkAct<'_>,
        by: &OperatorRequest,
    ) -> Result<(), ApiError> {
        let counts = format!("{} moved, {} refused", self.moved, self.refusals.len());
        let entry = AuditEntry::for_operator_request(by, act.action, &act.word, state.now());
        let entry = entry.with_states(Some(act.selection), Some(counts));
        Ok(audit::record(&state.store, &[entry]).await?)
    }
}
