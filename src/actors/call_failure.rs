//! The failures of calls to the authority, in the words that operators read.

use authority_client::{Authority, AuthorityFailure, CauseKind, Operation};

use crate::domain::kernel::upstream::{CallFailure, RecentCalls, UpstreamCause};

/// Returns the cause in an operator's words; `None` if the failure is about one document or one customer.
pub(crate) fn upstream_cause(cause: CauseKind) -> Option<UpstreamCause> {
    match cause {
        CauseKind::Unreachable | CauseKind::ConnectionReset => Some(UpstreamCause::Connect),
        CauseKind::Untrusted => Some(UpstreamCause::Tls),
        CauseKind::TimedOut => Some(UpstreamCause::Timeout),
        CauseKind::Down => Some(UpstreamCause::ServerError),
        CauseKind::KeyRefused => Some(UpstreamCause::Credentials),
        CauseKind::Malformed | CauseKind::Redirected => Some(UpstreamCause::BadAnswer),
        CauseKind::Ambiguous | CauseKind::Offline => None,
    }
}

/// Judges who is to blame for a failed call about the document `irn`, from the outcomes of other recent calls.
/// `authority` is the client that made the call. `None` if the call was not made, or was answered.
pub(crate) fn judge_failure(
    authority: &Authority,
    operation: Operation,
    irn: &str,
    failure: &AuthorityFailure,
) -> Option<CallFailure> {
    let cause = match failure {
        AuthorityFailure::Throttled { .. } => UpstreamCause::Throttled,
        failure => upstream_cause(failure.cause()?.kind())?,
    };
    let calls = authority.recent_calls(operation, irn);
    let recent = RecentCalls {
        answered: calls.answered,
        failed: calls.failed,
        own_answered: calls.own_answered,
        own_failed: calls.own_failed,
    };
    Some(CallFailure::judge(cause, calls.failed_in_a_row, recent))
}
