//! The failures of a call.
//!
//! `Refused` and `NotFound` are final. After `Retryable` and `Throttled` nothing has changed, so the call may be
//! repeated. After `BreakerOpen`, `CallsStopped`, `RateLimited`, `QueueFull` and `Paused` no request was sent. After
//! `Unknown` the call may have taken effect: ask `confirm` first.

use std::time::Duration;

/// The reason why a call did not succeed. Its text is a sentence that may be shown to the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityFailure {
    /// The authority refused the document. `message` is the authority's sentence.
    #[error("{message}")]
    Refused {
        /// The HTTP status, 400 to 499.
        status: u16,
        message: String,
    },
    /// The authority does not know this IRN, or has not signed it.
    #[error("{message}")]
    NotFound { message: String },
    /// The call changed nothing and may be made again later.
    #[error("{reason}")]
    Retryable { reason: Cause },
    /// The authority answered HTTP 429.
    #[error("the authority asks to be called less often{}", retry_hint(*.retry_after))]
    Throttled { retry_after: Option<Duration> },
    /// The call may have taken effect.
    #[error("{reason}; whether the call took effect is not known")]
    Unknown { reason: Cause },
    /// The breaker is open because earlier calls failed, so the call was not made. Does not count as an attempt.
    #[error("calls of this kind are held back after the authority failed repeatedly{}", retry_hint(Some(*.retry_after)))]
    BreakerOpen { retry_after: Duration },
    /// An operator tripped the breaker, so the call was not made. Nobody knows when an operator will reset it. Does not
    /// count as an attempt.
    #[error("an operator of this service holds back calls of this kind")]
    CallsStopped { retry_after: Duration },
    /// The authority asked for fewer calls of this operation, so the call was not made. Does not count as an attempt.
    #[error("calls of this kind are held back because the authority asks to be called less often{}", retry_hint(Some(*.retry_after)))]
    RateLimited { retry_after: Duration },
    /// The queue was full, or the call waited too long in it. The call was not made and does not count as an attempt.
    #[error("more calls of this kind wait than the authority bears at a time{}", retry_hint(Some(*.retry_after)))]
    QueueFull { retry_after: Duration },
    /// This client makes no calls (`ClientSettings::is_paused`). Does not count as an attempt.
    #[error("this service was started with --paused: it makes no call to the authority")]
    Paused,
}

/// The reason why a call has no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    #[error("the authority could not be reached: {problem}")]
    Unreachable { problem: &'static str },
    /// The TLS handshake failed: the certificate has expired, or its issuer is not known here.
    #[error("no trusted TLS connection to the authority could be made")]
    Untrusted,
    #[error("the authority did not answer within {} s", .after.as_secs())]
    TimedOut { after: Duration },
    #[error("the authority closed the connection before it had answered")]
    ConnectionReset,
    /// The answer is not JSON, has an unexpected shape, or is too long.
    #[error("the authority gave an answer that cannot be read (HTTP {status})")]
    Malformed { status: u16 },
    /// The authority answered a 5xx or 408.
    #[error("the authority is failing (HTTP {status})")]
    Down { status: u16 },
    /// The answer's words leave open whether they mean a duplicate, a busy server, or an earlier try that took effect.
    #[error("the authority answered neither yes nor no: {message}")]
    Ambiguous { message: String },
    /// The customer's access point is offline. The invoice stays signed.
    #[error("{message}")]
    Offline { message: String },
    /// The authority refused our credentials, so it has not judged the document.
    #[error("the authority does not accept this service's credentials: {message}")]
    KeyRefused { message: String },
    /// The authority answered with a redirect, which is never followed. The configured base URL is wrong.
    #[error("the authority points to another address (HTTP {status}), which is not followed")]
    Redirected { status: u16 },
}

/// The kind of a [`Cause`], without details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CauseKind {
    Unreachable,
    Untrusted,
    TimedOut,
    ConnectionReset,
    Malformed,
    Down,
    Ambiguous,
    Offline,
    KeyRefused,
    Redirected,
}

impl CauseKind {
    /// Every kind, in the order of the discriminants, so that `kind as usize` is its index.
    pub const ALL: [Self; 10] = [
        Self::Unreachable,
        Self::Untrusted,
        Self::TimedOut,
        Self::ConnectionReset,
        Self::Malformed,
        Self::Down,
        Self::Ambiguous,
        Self::Offline,
        Self::KeyRefused,
        Self::Redirected,
    ];

    /// Returns the name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Untrusted => "untrusted",
            Self::TimedOut => "timed_out",
            Self::ConnectionReset => "connection_reset",
            Self::Malformed => "malformed",
            Self::Down => "down",
            Self::Ambiguous => "ambiguous",
            Self::Offline => "offline",
            Self::KeyRefused => "key_refused",
            Self::Redirected => "redirected",
        }
    }

    /// True if this service or a certificate is misconfigured. Then waiting does not help, and the authority is not
    /// down.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Untrusted | Self::KeyRefused | Self::Redirected)
    }
}

impl AuthorityFailure {
    /// Returns how long to wait: the authority's Retry-After, or the wait that our limits or breaker demand.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after } => *retry_after,
            Self::BreakerOpen { retry_after }
            | Self::CallsStopped { retry_after }
            | Self::RateLimited { retry_after }
            | Self::QueueFull { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    /// Returns false if our own limits or breakers prevented the call. Any other call counts as an attempt, even one
    /// that could not connect.
    pub fn counts_as_attempt(&self) -> bool {
        !matches!(
            self,
            Self::BreakerOpen { .. }
                | Self::CallsStopped { .. }
                | Self::RateLimited { .. }
                | Self::QueueFull { .. }
                | Self::Paused
        )
    }

    /// Returns true if the authority has decided: the same call would fail in the same way again.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::NotFound { .. })
    }

    /// Returns true if the authority did not answer in time. Our API reports this as 504.
    pub fn is_timeout(&self) -> bool {
        matches!(self.cause().map(Cause::kind), Some(CauseKind::TimedOut))
    }

    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Retryable { reason } | Self::Unknown { reason } => Some(reason),
            _ => None,
        }
    }
}

impl Cause {
    pub fn kind(&self) -> CauseKind {
        match self {
            Self::Unreachable { .. } => CauseKind::Unreachable,
            Self::Untrusted => CauseKind::Untrusted,
            Self::TimedOut { .. } => CauseKind::TimedOut,
            Self::ConnectionReset => CauseKind::ConnectionReset,
            Self::Malformed { .. } => CauseKind::Malformed,
            Self::Down { .. } => CauseKind::Down,
            Self::Ambiguous { .. } => CauseKind::Ambiguous,
            Self::Offline { .. } => CauseKind::Offline,
            Self::KeyRefused { .. } => CauseKind::KeyRefused,
            Self::Redirected { .. } => CauseKind::Redirected,
        }
    }
}

fn retry_hint(wait: Option<Duration>) -> String {
    wait.map_or_else(String::new, |wait| {
        format!("; try again in {} s", wait.as_secs().max(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_read_as_sentences() {
        let timed_out = Cause::TimedOut {
            after: Duration::from_secs(30),
        };
        let sentences = [
            AuthorityFailure::Retryable {
                reason: timed_out.clone(),
            }
            .to_string(),
            AuthorityFailure::Unknown { reason: timed_out }.to_string(),
            AuthorityFailure::Throttled { retry_after: None }.to_string(),
            AuthorityFailure::BreakerOpen {
                retry_after: Duration::from_millis(10),
            }
            .to_string(),
            AuthorityFailure::CallsStopped {
                retry_after: Duration::from_mins(1),
            }
            .to_string(),
            AuthorityFailure::RateLimited {
                retry_after: Duration::from_secs(7),
            }
            .to_string(),
            AuthorityFailure::QueueFull {
                retry_after: Duration::from_secs(5),
            }
            .to_string(),
        ];
        assert_eq!(
            sentences,
            [
                "the authority did not answer within 30 s",
                "the authority did not answer within 30 s; whether the call took effect is not known",
                "the authority asks to be called less often",
                "calls of this kind are held back after the authority failed repeatedly; try again in 1 s",
                "an operator of this service holds back calls of this kind",
                "calls of this kind are held back because the authority asks to be called less often; try again in 7 s",
                "more calls of this kind wait than the authority bears at a time; try again in 5 s",
            ]
        );
    }

    #[test]
    fn a_call_that_was_not_made_counts_as_no_attempt_and_has_a_retry_after() {
        let retry_after = Duration::from_secs(3);
        let held = [
            AuthorityFailure::BreakerOpen { retry_after },
            AuthorityFailure::CallsStopped { retry_after },
            AuthorityFailure::RateLimited { retry_after },
            AuthorityFailure::QueueFull { retry_after },
        ];
        for failure in held {
            assert!(
                !failure.counts_as_attempt() && !failure.is_final(),
                "{failure:?}"
            );
            assert_eq!(failure.retry_after(), Some(retry_after), "{failure:?}");
        }
        assert!(
            AuthorityFailure::Throttled {
                retry_after: Some(retry_after)
            }
            .counts_as_attempt()
        );
    }
}
