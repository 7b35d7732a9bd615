//! The result of one attempt at a delivery: an outcome and the facts for the log of attempts. Deliberately absent:
//! the next attempt. `schedule` has its delay, and the caller decides if there is one.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::auth::AuthFault;
use crate::domain::kernel::retry_after::RetryAfter;
use crate::webhook::http::connect_policy::AddressesRefused;
use crate::webhook::http::destination::UrlFault;
use crate::webhook::http::phases::PhaseTimes;

/// The result of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    pub outcome: AttemptOutcome,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    pub duration: Duration,
    pub phases: PhaseTimes,
    /// The Retry-After of the response.
    pub retry_after: Option<RetryAfter>,
    /// The start of the response body, as text.
    pub response_head: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// A 2xx. The body does not matter, not even if it broke off.
    Delivered,
    /// 410: the receiver wants no more messages.
    Gone,
    /// Any other status, including redirects.
    Rejected(u16),
    /// Any status but a 2xx, with the header that asks not to send this message again.
    Aborted(u16),
    /// A 2xx whose body does not confirm the message in the terms of its format.
    NotAccepted(u16),
    /// Not sent: the request could not be authenticated.
    Unauthenticated(AuthFault),
    /// No response before the timeout.
    TimedOut,
    /// No response.
    Unreachable(TransportFault),
    /// Not sent: the policy refuses the URL or every address of its host.
    Forbidden(UrlFault),
}

/// The step at which a request failed before its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransportFault {
    /// The name does not resolve.
    Dns,
    /// No TCP connection.
    Connect,
    /// A TCP connection, but no trusted TLS.
    Tls,
    /// The connection was cut, or the response was not HTTP.
    Reset,
}

impl AttemptResult {
    /// An attempt without a response.
    pub fn unanswered(outcome: AttemptOutcome) -> Self {
        Self {
            outcome,
            status: None,
            duration: Duration::ZERO,
            phases: PhaseTimes::default(),
            retry_after: None,
            response_head: String::new(),
        }
    }

    pub fn is_delivered(&self) -> bool {
        self.outcome == AttemptOutcome::Delivered
    }

    /// True if the receiver wants no more messages at all.
    pub fn is_gone(&self) -> bool {
        matches!(self.outcome, AttemptOutcome::Gone | AttemptOutcome::Aborted(410))
    }
}

impl AttemptOutcome {
    /// The name of `Aborted`.
    pub const ABORTED: &str = "aborted";

    /// The name in metrics and in the log of attempts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Gone => "gone",
            Self::Rejected(_) | Self::NotAccepted(_) => "rejected",
            Self::Aborted(_) => Self::ABORTED,
            Self::Unauthenticated(_) => "auth",
            Self::TimedOut => "timed_out",
            Self::Unreachable(TransportFault::Dns) => "dns",
            Self::Unreachable(TransportFault::Connect) => "connect",
            Self::Unreachable(TransportFault::Tls) => "tls",
            Self::Unreachable(TransportFault::Reset) => "reset",
            Self::Forbidden(_) => "forbidden",
        }
    }

    /// A sentence for the owner of the endpoint; `None` if the message was delivered.
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
            Self::NotAccepted(status) => {
                format!(
                    "the endpoint answered {status} with an error, with nothing of its data format or with more than \
                     64 KiB"
                )
            }
            Self::Unauthenticated(fault) => fault.to_string(),
            Self::TimedOut => "the endpoint did not answer in time".to_owned(),
            Self::Unreachable(TransportFault::Dns) => "the endpoint's name does not resolve".to_owned(),
            Self::Unreachable(TransportFault::Connect) => {
                "no connection to the endpoint could be made".to_owned()
            }
            Self::Unreachable(TransportFault::Tls) => {
                "no trusted TLS connection to the endpoint could be made".to_owned()
            }
            Self::Unreachable(TransportFault::Reset) => {
                "the connection ended without an HTTP answer".to_owned()
            }
            Self::Forbidden(fault) => fault.to_string(),
        };
        Some(sentence)
    }

    /// In a 2xx the abort header has no effect, because the message was accepted.
    pub(super) fn from_response(status: u16, aborts: bool) -> Self {
        match status {
            200..=299 => Self::Delivered,
            other if aborts => Self::Aborted(other),
            410 => Self::Gone,
            other => Self::Rejected(other),
        }
    }

    pub(super) fn from_error(error: &reqwest::Error) -> Self {
        if sources(error).any(<dyn Error>::is::<AddressesRefused>) {
            Self::Forbidden(UrlFault::AddressRefused)
        } else if error.is_timeout() {
            Self::TimedOut
        } else if error.is_dns() {
            Self::Unreachable(TransportFault::Dns)
        } else if !error.is_connect() {
            Self::Unreachable(TransportFault::Reset)
        } else if sources(error).filter_map(|source| source.downcast_ref()).any(is_tls_fault) {
            Self::Unreachable(TransportFault::Tls)
        } else {
            Self::Unreachable(TransportFault::Connect)
        }
    }
}

/// A TLS library reports its faults as invalid data and a cut handshake as an early end. The connector wraps both in
/// another `io::Error`, whose inner error `source` does not return.
fn is_tls_fault(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
        || error.get_ref().and_then(|inner| inner.downcast_ref()).is_some_and(is_tls_fault)
}

fn sources<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |error| (*error).source())
}
