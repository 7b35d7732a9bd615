//! The causes for which calls to the authority fail, and the party to blame, in words that pages, responses and metrics
//! share.

use serde::Serialize;

use crate::domain::kernel::codes::words;

words! {
    /// The cause of a failed call to the authority.
    UpstreamCause {
        Connect = "connect",
        Tls = "tls",
        Timeout = "timeout",
        ServerError = "5xx",
        Credentials = "credentials",
        Throttled = "throttled",
        /// The response cannot be read, or it is a redirection.
        BadAnswer = "bad-answer",
    }
}

impl UpstreamCause {
    /// True if the failure is on our side: the authority has no outage, and waiting does not help.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Credentials | Self::Tls)
    }

    /// Returns a sentence about a fault of ours; `None` if the failure is not on our side.
    pub fn own_fault_sentence(self) -> Option<&'static str> {
        match self {
            Self::Credentials => Some("The fault is ours: the authority does not accept our key."),
            Self::Tls => {
                Some("The fault may be ours: the authority's certificate is not accepted here.")
            }
            _ => None,
        }
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
    /// The party to blame for a failure.
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
    /// Returns the party to blame as a sentence.
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

/// The calls to one operation within the last 30 s. A document that failed several times counts once. Of the answered
/// calls, only those count that came after the first failure of the document that is judged: answers from before an
/// outage do not show that the authority answers others now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecentCalls {
    /// The answered calls of all taxpayers.
    pub answered: u32,
    pub failed: u32,
    /// The answered calls of the taxpayer whose call is judged. `own_failed` counts the failed ones.
    pub own_answered: u32,
    pub own_failed: u32,
}

/// The cause of a failed call, and the party to blame, if the other calls at that time show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CallFailure {
    pub cause: UpstreamCause,
    pub blame: Option<Blame>,
}

/// The number of failures in a row from which a document or its taxpayer may be blamed. A single failure may be chance.
const ATTEMPTS_MIN: u32 = 2;

impl CallFailure {
    /// Judges a failed call about a document by the other calls of the last 30 s. `failed_in_a_row`
    /// is the number of calls about this document that failed in a row. A call that was not answered at all says nothing
    /// about its document.
    pub fn judge(cause: UpstreamCause, failed_in_a_row: u32, recent: RecentCalls) -> Self {
        let blame = match cause {
            UpstreamCause::Credentials => Some(Blame::OurKey),
            UpstreamCause::Tls | UpstreamCause::Throttled => None,
            _ if recent.answered == 0 => (recent.failed > 1).then_some(Blame::Authority),
            UpstreamCause::Connect | UpstreamCause::Timeout => None,
            _ if failed_in_a_row < ATTEMPTS_MIN => None,
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
                UpstreamCause::BadAnswer,
                2,
                calls(9, 12, 3, 12),
                Some(Blame::Document),
            ),
            (
                UpstreamCause::ServerError,
                2,
                calls(9, 12, 0, 12),
                Some(Blame::Taxpayer),
            ),
            // Its other documents were not called for, so it may be this one or all of them.
            (UpstreamCause::ServerError, 2, calls(9, 1, 0, 1), None),
            // The calls were not answered, so they say nothing about the document or its taxpayer.
            (UpstreamCause::Connect, 2, calls(9, 1, 9, 1), None),
            (UpstreamCause::Connect, 2, calls(9, 12, 0, 12), None),
            (UpstreamCause::Timeout, 2, calls(9, 12, 3, 12), None),
            (UpstreamCause::Timeout, 2, calls(9, 12, 0, 12), None),
            (
                UpstreamCause::Connect,
                2,
                calls(0, 12, 0, 12),
                Some(Blame::Authority),
            ),
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
