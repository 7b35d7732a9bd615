//! What came of one attempt at a delivery: the outcome that decides what follows, and the facts that are
//! logged. Deliberately absent: what follows. `schedule` says when the next attempt is due, its caller
//! whether there is one.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::auth::AuthFault;
use super::destination::UrlFault;
use super::gate::AddressesRefused;
use super::phases::Phases;
use super::retry_after::RetryAfter;

/// One attempt, finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub outcome: Outcome,
    /// The HTTP status, when there was an answer.
    pub status: Option<u16>,
    pub duration: Duration,
    pub phases: Phases,
    /// The wait the receiver asked for.
    pub retry_after: Option<RetryAfter>,
    /// The start of the answer's body, as text.
    pub response_head: String,
}

/// What an attempt came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A 2xx. The body does not matter, nor whether it came to an end.
    Delivered,
    /// 410: the receiver wants no more.
    Gone,
    /// Any other status, redirects among them.
    Rejected(u16),
    /// Any status but a 2xx, with the word that this message is not to be sent again.
    Aborted(u16),
    /// A 2xx that says in the words of its format that it was not taken, or not that it was.
    NotTaken(u16),
    /// Not sent: who sends it could not be shown.
    Unauthenticated(AuthFault),
    /// No answer within the time.
    TimedOut,
    /// No answer at all.
    Unreachable(Fault),
    /// Not sent: the URL or every address of its host is refused by the policy.
    Forbidden(UrlFault),
}

/// Where the way to an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The name does not resolve.
    Dns,
    /// No connection.
    Connect,
    /// A connection, but no trusted encryption.
    Tls,
    /// The connection was cut, or what came over it was no HTTP.
    Reset,
}

impl Attempt {
    /// One without an answer.
    pub fn unanswered(outcome: Outcome) -> Self {
        Self {
            outcome,
            status: None,
            duration: Duration::ZERO,
            phases: Phases::default(),
            retry_after: None,
            response_head: String::new(),
        }
    }

    pub fn is_delivered(&self) -> bool {
        self.outcome == Outcome::Delivered
    }

    /// Whether the receiver wants no more of anything, whatever else it said.
    pub fn is_gone(&self) -> bool {
        matches!(self.outcome, Outcome::Gone | Outcome::Aborted(410))
    }
}

impl Outcome {
    /// The word for a message that its receiver does not want.
    pub const ABORTED: &str = "aborted";

    /// The word for metrics and the log of attempts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Gone => "gone",
            Self::Rejected(_) | Self::NotTaken(_) => "rejected",
            Self::Aborted(_) => Self::ABORTED,
            Self::Unauthenticated(_) => "auth",
            Self::TimedOut => "timed_out",
            Self::Unreachable(Fault::Dns) => "dns",
            Self::Unreachable(Fault::Connect) => "connect",
            Self::Unreachable(Fault::Tls) => "tls",
            Self::Unreachable(Fault::Reset) => "reset",
            Self::Forbidden(_) => "forbidden",
        }
    }

    /// A sentence for the owner of the endpoint; None when it was delivered.
    pub fn failure(self) -> Option<String> {
        let sentence = match self {
            Self::Delivered => return None,
            Self::Gone => "the endpoint answered 410 and is no longer called".to_owned(),
            Self::Rejected(status @ 300..=399) => {
                format!("the endpoint answered {status}; redirects are not followed")
            }
            Self::Rejected(status) => format!("the endpoint answered {status}"),
            Self::Aborted(status) => {
                format!("the endpoint answered {status} and wants this message no more")
            }
            Self::NotTaken(status) => {
                format!(
                    "the endpoint answered {status} with an error, with nothing of its data format or with more than \
                     64 KiB"
                )
            }
            Self::Unauthenticated(fault) => fault.to_string(),
            Self::TimedOut => "the endpoint did not answer in time".to_owned(),
            Self::Unreachable(Fault::Dns) => "the endpoint's name does not resolve".to_owned(),
            Self::Unreachable(Fault::Connect) => "no connection to the endpoint could be made".to_owned(),
            Self::Unreachable(Fault::Tls) => {
                "no trusted TLS connection to the endpoint could be made".to_owned()
            }
            Self::Unreachable(Fault::Reset) => "the connection ended without an HTTP answer".to_owned(),
            Self::Forbidden(fault) => fault.to_string(),
        };
        Some(sentence)
    }

    /// A message that was taken cannot be aborted any more: in a 2xx the word changes nothing.
    pub(super) fn of_answer(status: u16, aborts: bool) -> Self {
        match status {
            200..=299 => Self::Delivered,
            other if aborts => Self::Aborted(other),
            410 => Self::Gone,
            other => Self::Rejected(other),
        }
    }

    pub(super) fn of_error(error: &reqwest::Error) -> Self {
        if sources(error).any(<dyn Error>::is::<AddressesRefused>) {
            Self::Forbidden(UrlFault::AddressRefused)
        } else if error.is_timeout() {
            Self::TimedOut
        } else if error.is_dns() {
            Self::Unreachable(Fault::Dns)
        } else if !error.is_connect() {
            Self::Unreachable(Fault::Reset)
        } else if sources(error).filter_map(|source| source.downcast_ref()).any(is_handshake) {
            Self::Unreachable(Fault::Tls)
        } else {
            Self::Unreachable(Fault::Connect)
        }
    }
}

/// A TLS library reports its faults as invalid data, and a handshake cut short as an early end; the
/// connector wraps either in one more error of input and output, which `source` would step over.
fn is_handshake(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
        || error.get_ref().and_then(|inner| inner.downcast_ref()).is_some_and(is_handshake)
}

fn sources<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |error| (*error).source())
}
