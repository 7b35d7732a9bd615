//! The ways a call can fail, told apart by what the caller may do next.
//!
//! `Refused` and `NotFound` are the authority's decision about this document. `Retryable` and `Throttled`
//! certainly changed nothing. `BreakerOpen`, `Paced` and `Crowded` are ours: no request left this process.
//! `Unknown` may have taken effect: ask `confirm` before sending again.

use std::time::Duration;

/// Why a call did not succeed. Its text is a sentence that may be shown to the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The authority looked at the document and said no. `message` is its own sentence.
    #[error("{message}")]
    Refused {
        /// The HTTP status, 400 to 499.
        status: u16,
        message: String,
        /// The authority's path of the field at fault, lower-cased:
        /// `invoicerequest.invoice.taxtotal[0].taxamount`.
        field_path: Option<String>,
        authority_error: Option<Box<AuthorityError>>,
    },
    /// The authority does not know this IRN, or has not signed it.
    #[error("{message}")]
    NotFound { message: String },
    /// Nothing happened, or nothing that matters: the same call may be made again later.
    #[error("{reason}")]
    Retryable { reason: Cause },
    /// HTTP 429.
    #[error("the authority asks to be called less often{}", again_in(*.retry_after))]
    Throttled { retry_after: Option<Duration> },
    /// The call may have taken effect.
    #[error("{reason}; whether the call took effect is not known")]
    Unknown { reason: Cause },
    /// The call was not made, because too many before it failed. No attempt is used up.
    #[error("calls of this kind are held back after the authority failed repeatedly{}", again_in(Some(*.retry_after)))]
    BreakerOpen { retry_after: Duration },
    /// The call was not made, because the authority asked for fewer of its kind. No attempt is used up.
    #[error("calls of this kind are held back because the authority asks to be called less often{}", again_in(Some(*.retry_after)))]
    Paced { retry_after: Duration },
    /// The call was not made, because others took all the places for too long. No attempt is used up.
    #[error("more calls of this kind wait than the authority bears at a time{}", again_in(Some(*.retry_after)))]
    Crowded { retry_after: Duration },
}

/// What stood between the call and a usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    #[error("the authority could not be reached: {problem}")]
    Unreachable { problem: &'static str },
    #[error("the authority did not answer within {} s", .after.as_secs())]
    TimedOut { after: Duration },
    #[error("the authority closed the connection before it had answered")]
    Cut,
    /// No JSON, not the promised shape, or longer than the limit.
    #[error("the authority gave an answer that cannot be read (HTTP {status})")]
    Garbled { status: u16 },
    /// A 5xx or 408.
    #[error("the authority is failing (HTTP {status})")]
    Down { status: u16 },
    /// The words that mean either a duplicate or a busy server, or that an earlier try took effect.
    #[error("the authority answered neither yes nor no: {message}")]
    Ambiguous { message: String },
    /// The other side cannot take the invoice at present; it stays signed.
    #[error("{message}")]
    Offline { message: String },
    /// Our own credentials are at fault, never the document.
    #[error("the authority does not accept this service's credentials: {message}")]
    KeyRefused { message: String },
    /// A redirect, which is never followed: the base URL is at fault.
    #[error("the authority points to another address (HTTP {status}), which is not followed")]
    Misrouted { status: u16 },
}

/// A [`Cause`] without its particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Unreachable,
    TimedOut,
    Cut,
    Garbled,
    Down,
    Ambiguous,
    Offline,
    KeyRefused,
    Misrouted,
}

/// What the authority adds to a refusal, for the log and for support.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorityError {
    /// The authority's reference of this error.
    pub id: Option<String>,
    /// The part of the authority that raised it, as in `invoice_actions`.
    pub handler: Option<String>,
    pub fields: Vec<FieldFault>,
}

/// One entry of `error.errors[]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldFault {
    pub field: String,
    pub message: String,
}

impl Failure {
    /// The wait that the authority asks for, or whoever held the call back.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after } => *retry_after,
            Self::BreakerOpen { retry_after }
            | Self::Paced { retry_after }
            | Self::Crowded { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    /// Whether a request left this process for it: a call that was held back burns no attempt.
    pub fn burns_attempt(&self) -> bool {
        !matches!(self, Self::BreakerOpen { .. } | Self::Paced { .. } | Self::Crowded { .. })
    }

    /// Whether the authority decided, so that the same call would fail in the same way again.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::NotFound { .. })
    }

    /// Whether the time ran out, which the reference endpoints answer with 504 instead of 502.
    pub fn timed_out(&self) -> bool {
        matches!(self.cause().map(Cause::kind), Some(Kind::TimedOut))
    }

    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Retryable { reason } | Self::Unknown { reason } => Some(reason),
            _ => None,
        }
    }
}

impl Cause {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Unreachable { .. } => Kind::Unreachable,
            Self::TimedOut { .. } => Kind::TimedOut,
            Self::Cut => Kind::Cut,
            Self::Garbled { .. } => Kind::Garbled,
            Self::Down { .. } => Kind::Down,
            Self::Ambiguous { .. } => Kind::Ambiguous,
            Self::Offline { .. } => Kind::Offline,
            Self::KeyRefused { .. } => Kind::KeyRefused,
            Self::Misrouted { .. } => Kind::Misrouted,
        }
    }
}

fn again_in(wait: Option<Duration>) -> String {
    wait.map_or_else(String::new, |wait| format!("; try again in {} s", wait.as_secs().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_read_as_sentences() {
        let timed_out = Cause::TimedOut { after: Duration::from_secs(30) };
        let sentences = [
            Failure::Retryable { reason: timed_out.clone() }.to_string(),
            Failure::Unknown { reason: timed_out }.to_string(),
            Failure::Throttled { retry_after: None }.to_string(),
            Failure::BreakerOpen { retry_after: Duration::from_millis(10) }.to_string(),
            Failure::Paced { retry_after: Duration::from_secs(7) }.to_string(),
            Failure::Crowded { retry_after: Duration::from_secs(5) }.to_string(),
        ];
        assert_eq!(
            sentences,
            [
                "the authority did not answer within 30 s",
                "the authority did not answer within 30 s; whether the call took effect is not known",
                "the authority asks to be called less often",
                "calls of this kind are held back after the authority failed repeatedly; try again in 1 s",
                "calls of this kind are held back because the authority asks to be called less often; try again in 7 s",
                "more calls of this kind wait than the authority bears at a time; try again in 5 s",
            ]
        );
    }

    #[test]
    fn a_call_that_was_not_made_burns_no_attempt_and_tells_when_to_come_back() {
        let retry_after = Duration::from_secs(3);
        let held = [
            Failure::BreakerOpen { retry_after },
            Failure::Paced { retry_after },
            Failure::Crowded { retry_after },
        ];
        for failure in held {
            assert!(!failure.burns_attempt() && !failure.is_final(), "{failure:?}");
            assert_eq!(failure.retry_after(), Some(retry_after), "{failure:?}");
        }
        assert!(Failure::Throttled { retry_after: Some(retry_after) }.burns_attempt());
    }
}
