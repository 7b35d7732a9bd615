//! Why a call to the authority failed, and whose fault that is, in words that pages, answers and metrics share.

use serde::Serialize;

use crate::domain::kernel::codes::words;

words! {
    /// Why calls to the authority fail.
    UpstreamCause {
        Connect = "connect",
        Tls = "tls",
        Timeout = "timeout",
        ServerError = "5xx",
        Credentials = "credentials",
        Throttled = "throttled",
        /// An answer that cannot be read, or that leads elsewhere.
        BadAnswer = "bad-answer",
    }
}

impl UpstreamCause {
    /// True if the failure is on our side: waiting does not help, and the authority is not out.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Credentials | Self::Tls)
    }

    /// Returns what the authority does, as the end of a sentence that begins with "the authority:".
    pub fn explanation(self) -> &'static str {
        match self {
            Self::Connect => "it cannot be reached",
            Self::Tls => "its certificate is not accepted",
            Self::Timeout => "calls end without an answer",
            Self::ServerError => "it answers with errors of its own (5xx)",
            Self::Credentials => "it does not accept our key",
            Self::Throttled => "it asks to be called less often",
            Self::BadAnswer => "its answers cannot be read",
        }
    }
}

words! {
    /// Whose fault a failure is.
    Blame {
        Authority = "authority",
        OurKey = "our-key",
        OurNetwork = "our-network",
        Receiver = "receiver",
        Taxpayer = "taxpayer",
        Document = "document",
    }
}

impl Blame {
    /// Returns the sentence that says so.
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Authority => "The fault is the authority's: it answers no other document either.",
            Self::OurKey => "The fault is ours: the key.",
            Self::OurNetwork => {
                "Receivers cannot be reached either, so look at our own network first."
            }
            Self::Receiver => "The fault is the receiver's: others answer.",
            Self::Taxpayer => {
                "The fault is with the documents of this taxpayer: the authority answers those of others."
            }
            Self::Document => {
                "The fault is with this document: the authority answers others, also of this taxpayer."
            }
        }
    }
}

/// The calls to one operation within the last 30 s. Each document that failed counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecentCalls {
    /// Calls of all taxpayers that were answered.
    pub answered: u32,
    pub failed: u32,
    /// Those among them that were made for this taxpayer.
    pub own_answered: u32,
    pub own_failed: u32,
}

/// Why one call failed, and whose fault that was, if the other calls of that moment showed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CallFailure {
    pub cause: UpstreamCause,
    pub blame: Option<Blame>,
}

/// A single failure may be chance. After so many in a row something is wrong with the document or its taxpayer.
const ATTEMPTS_MIN: u32 = 2;

impl CallFailure {
    /// Judges a failed call about a document by the other calls of the last 30 s. `attempt` counts the calls about this
    /// document that failed in a row.
    pub fn judge(cause: UpstreamCause, attempt: u32, recent: RecentCalls) -> Self {
        let blame = match cause {
            UpstreamCause::Credentials => Some(Blame::OurKey),
            UpstreamCause::Tls | UpstreamCause::Throttled => None,
            _ if recent.answered == 0 => (recent.failed > 1).then_some(Blame::Authority),
            _ if attempt < ATTEMPTS_MIN => None,
            _ if recent.own_answered > 0 => Some(Blame::Document),
            _ if recent.own_failed > 1 => Some(Blame::Taxpayer),
            _ => None,
        };
        Self { cause, blame }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_calls_of_the_moment_say_whose_fault_a_failure_is() {
        let calls = |answered, failed, own_answered, own_failed| RecentCalls {
            answered,
            failed,
            own_answered,
            own_failed,
        };
        for (cause, attempt, recent, blame) in [
            (
                UpstreamCause::Credentials,
                1,
                calls(9, 1, 9, 1),
                Some(Blame::OurKey),
            ),
            (UpstreamCause::Tls, 3, calls(0, 9, 0, 1), None),
            (UpstreamCause::Throttled, 3, calls(9, 9, 0, 1), None),
            (
                UpstreamCause::ServerError,
                1,
                calls(0, 2, 0, 1),
                Some(Blame::Authority),
            ),
            // Nobody else called, so nobody knows.
            (UpstreamCause::ServerError, 9, calls(0, 1, 0, 1), None),
            (UpstreamCause::ServerError, 1, calls(9, 1, 9, 1), None),
            (
                UpstreamCause::ServerError,
                2,
                calls(9, 1, 9, 1),
                Some(Blame::Document),
            ),
            (
                UpstreamCause::Timeout,
                2,
                calls(9, 12, 3, 12),
                Some(Blame::Document),
            ),
            (
                UpstreamCause::Timeout,
                2,
                calls(9, 12, 0, 12),
                Some(Blame::Taxpayer),
            ),
            // Its other documents were not called for, so it may be this one or all of them.
            (UpstreamCause::Connect, 2, calls(9, 1, 0, 1), None),
        ] {
            assert_eq!(
                CallFailure::judge(cause, attempt, recent).blame,
                blame,
                "{cause} {recent:?}"
            );
        }
    }

    #[test]
    fn each_blame_is_a_sentence() {
        for blame in Blame::ALL {
            assert!(blame.sentence().ends_with('.'), "{blame}");
        }
    }
}
