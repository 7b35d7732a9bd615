//! The outcome of one operator action on many objects, such as runs or dead letters, and the entry of the action in the
//! audit log. Each object also gets an entry of its own. An object to which the action was applied counts as moved.

use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::audit;

/// The maximum number of objects to which one call applies an action. The caller repeats the call until nothing
/// matches.
pub(crate) const SUBJECTS_MAX: u64 = 1_000;

/// An object for which the action was refused, with the reason.
#[derive(Debug)]
pub(crate) struct BulkRefusal {
    pub(crate) id: String,
    pub(crate) message: String,
}

#[derive(Debug, Default)]
pub(crate) struct BulkOutcome {
    /// The ids of the objects to which the action was applied.
    pub(crate) moved: Vec<String>,
    pub(crate) refusals: Vec<BulkRefusal>,
    /// The failure that stopped the action early; `None` if there was none. Objects that were moved before the failure
    /// stay moved.
    pub(crate) failure: Option<ApiError>,
}

/// The facts about a bulk action that its entry in the audit log shows.
pub(crate) struct BulkActionEntry<'a> {
    pub(crate) action: AuditAction,
    /// The name of the action, such as `retry`. It is the subject of the audit entry.
    pub(crate) action_name: &'a str,
    /// The filter that chose the objects, or the number of objects if the operator picked each of them.
    pub(crate) selection: String,
}

impl BulkOutcome {
    /// Adds the result for objects that one command changed together. A client error counts as a refusal of each of
    /// them, any other error as the failure that ends the action.
    pub(crate) fn add_result(&mut self, ids: Vec<String>, result: Result<(), ApiError>) {
        match result {
            Ok(()) => self.moved.extend(ids),
            Err(error) if error.status.is_client_error() => {
                for id in &ids {
                    self.add_refusal(id, error.message.to_string());
                }
            }
            Err(error) => self.failure = Some(error),
        }
    }

    pub(crate) fn add_refusal(&mut self, id: &impl ToString, message: String) {
        self.refusals.push(BulkRefusal {
            id: id.to_string(),
            message,
        });
    }

    /// Writes the audit entry of the whole action, with its selection and its counts.
    pub(crate) async fn record_in_audit(
        &self,
        state: &ApiState,
        action: BulkActionEntry<'_>,
        by: &OperatorRequest,
    ) -> Result<(), ApiError> {
        let moved = self.moved.len();
        let counts = format!("{moved} moved, {} refused", self.refusals.len());
        let entry =
            AuditEntry::for_operator_request(by, action.action, &action.action_name, state.now());
        let entry = entry.with_states(Some(action.selection), Some(counts));
        Ok(audit::record(&state.store, &[entry]).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::kernel::refusal::Refusal;

    #[test]
    fn objects_that_are_moved_together_are_counted_one_by_one() {
        let ids = || vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        // The result, the number of moved objects, the number of refused objects, and whether the action ended early.
        let cases = [
            (Ok(()), 3, 0, false),
            (Err(ApiError::from(Refusal::WebhookDisabled)), 0, 3, false),
            (Err(ApiError::internal("down")), 0, 0, true),
        ];
        for (result, moved, refused, has_ended) in cases {
            let mut outcome = BulkOutcome::default();
            outcome.add_result(ids(), result);
            let counts = (outcome.moved.len(), outcome.refusals.len());
            assert_eq!(counts, (moved, refused));
            assert_eq!(outcome.failure.is_some(), has_ended);
        }
    }
}
