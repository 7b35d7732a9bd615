//! The signal of a finished call about the authority's load.

use std::time::Duration;

use crate::transport::failure::{AuthorityFailure, CauseKind};

/// The evidence of a finished call about the authority's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadSignal {
    /// The call succeeded and took this long.
    Succeeded(Duration),
    /// The authority refused the request: a good answer, but too quick to measure the authority's response time.
    Answered,
    /// The call says nothing about load.
    Neutral,
    Overloaded,
    /// The authority answered HTTP 429. The value is the wait that it asked for, if any.
    Throttled(Option<Duration>),
}

/// Returns what the result of a call says about the authority's load. "Busy" counts as overload only for reads. For
/// other calls it may mean duplicate, and many duplicates after a restart must not lower the limit.
pub(crate) fn load_signal<T>(result: &Result<T, AuthorityFailure>, took: Duration) -> LoadSignal {
    let reason = match result {
        Ok(_) => return LoadSignal::Succeeded(took),
        Err(AuthorityFailure::Refused { .. } | AuthorityFailure::NotFound { .. }) => {
            return LoadSignal::Answered;
        }
        Err(AuthorityFailure::Throttled { retry_after }) => {
            return LoadSignal::Throttled(*retry_after);
        }
        Err(
            AuthorityFailure::BreakerOpen { .. }
            | AuthorityFailure::CallsStopped { .. }
            | AuthorityFailure::RateLimited { .. }
            | AuthorityFailure::QueueFull { .. }
            | AuthorityFailure::Paused,
        ) => return LoadSignal::Neutral,
        Err(AuthorityFailure::Retryable { reason }) if reason.kind() == CauseKind::Ambiguous => {
            return LoadSignal::Overloaded;
        }
        Err(AuthorityFailure::Retryable { reason } | AuthorityFailure::Unknown { reason }) => {
            reason
        }
    };
    match reason.kind() {
        CauseKind::TimedOut | CauseKind::ConnectionReset | CauseKind::Down => {
            LoadSignal::Overloaded
        }
        CauseKind::Offline => LoadSignal::Answered,
        CauseKind::Ambiguous
        | CauseKind::Unreachable
        | CauseKind::Untrusted
        | CauseKind::Malformed
        | CauseKind::KeyRefused
        | CauseKind::Redirected => LoadSignal::Neutral,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::failure::Cause;

    #[test]
    fn the_load_signal_follows_from_the_kind_of_failure() {
        let took = Duration::from_millis(7);
        let both = [
            (
                Cause::TimedOut { after: took },
                LoadSignal::Overloaded,
                LoadSignal::Overloaded,
            ),
            (
                Cause::ConnectionReset,
                LoadSignal::Overloaded,
                LoadSignal::Overloaded,
            ),
            (
                Cause::Down { status: 500 },
                LoadSignal::Overloaded,
                LoadSignal::Overloaded,
            ),
            (
                Cause::Ambiguous {
                    message: String::new(),
                },
                LoadSignal::Overloaded,
                LoadSignal::Neutral,
            ),
            (
                Cause::Offline {
                    message: String::new(),
                },
                LoadSignal::Answered,
                LoadSignal::Answered,
            ),
            (
                Cause::Unreachable { problem: "" },
                LoadSignal::Neutral,
                LoadSignal::Neutral,
            ),
            (
                Cause::Malformed { status: 200 },
                LoadSignal::Neutral,
                LoadSignal::Neutral,
            ),
            (
                Cause::KeyRefused {
                    message: String::new(),
                },
                LoadSignal::Neutral,
                LoadSignal::Neutral,
            ),
            (
                Cause::Redirected { status: 302 },
                LoadSignal::Neutral,
                LoadSignal::Neutral,
            ),
        ];
        for (cause, retryable, unknown) in both {
            let reason = cause.clone();
            let one = AuthorityFailure::Retryable { reason };
            let reason = cause.clone();
            let other = AuthorityFailure::Unknown { reason };
            assert_eq!(load_signal::<()>(&Err(one), took), retryable, "{cause:?}");
            assert_eq!(load_signal::<()>(&Err(other), took), unknown, "{cause:?}");
        }
        assert_eq!(load_signal(&Ok(()), took), LoadSignal::Succeeded(took));
        let missing = AuthorityFailure::NotFound {
            message: String::new(),
        };
        assert_eq!(load_signal::<()>(&Err(missing), took), LoadSignal::Answered);
        let throttled = AuthorityFailure::Throttled {
            retry_after: Some(took),
        };
        assert_eq!(
            load_signal::<()>(&Err(throttled), took),
            LoadSignal::Throttled(Some(took))
        );
    }
}
