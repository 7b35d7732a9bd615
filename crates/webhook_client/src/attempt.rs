//! The result of one attempt at a delivery: the outcome, and the facts that the log of attempts stores.

use std::error::Error;
use std::io;
use std::time::Duration;

use address_policy::UrlFault;
use hyper_util::client::legacy::Error as ClientError;
use timing::retry_after::RetryAfter;

use super::auth::AuthFault;
use crate::http::LoggedHeaders;
use crate::http::connect_policy::AddressesRefused;
use crate::http::phases::PhaseTimes;
use crate::http::read_budget::ReadBudgetSpent;
use crate::http::resolver::LookupError;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptResult {
    pub outcome: AttemptOutcome,
    /// `None` if there was no response.
    pub status: Option<u16>,
    pub duration: Duration,
    pub phases: PhaseTimes,
    /// The Retry-After header of the response.
    pub retry_after: Option<RetryAfter>,
    /// The first bytes of the response body, as text.
    pub response_head: String,
    /// The headers of the last request, without secrets. Empty if none was made.
    pub request_headers: LoggedHeaders,
    /// The headers of the response, without secrets.
    pub response_headers: LoggedHeaders,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The status was 2xx, even if the body broke off.
    Delivered,
    /// The status was 410: the receiver wants no more messages.
    Gone,
    /// The status was neither 2xx nor 410. Redirects count as rejected too.
    Rejected(u16),
    /// The status was not 2xx, and a header of the response asks us not to send this message again.
    Aborted(u16),
    /// The status was 2xx, but the body does not confirm the message, as the endpoint's data format requires.
    NotAccepted(u16),
    /// The request was not sent, because it could not be authenticated.
    Unauthenticated(AuthFault),
    /// There was no response before the timeout.
    TimedOut,
    /// There was no response, because the request failed at this step of the connection.
    Unreachable(TransportFault),
    /// The request was not sent, because the address policy forbids its URL or every address of its host.
    Forbidden(UrlFault),
}

/// The step at which a request without a response failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TransportFault {
    /// The name of the host does not resolve.
    Dns,
    /// No TCP connection could be made.
    Connect,
    /// A TCP connection was made, but TLS failed, for example because the certificate is not trusted.
    Tls,
    /// The connection was cut, or the response was not HTTP.
    Reset,
    /// The connection was closed, because the receiver sent more bytes before the end of the response's head than the
    /// client reads (`ReadBudget`).
    Excess,
}

impl AttemptResult {
    /// Builds the result of an attempt that got no response.
    pub fn without_response(outcome: AttemptOutcome) -> Self {
        Self {
            outcome,
            status: None,
            duration: Duration::ZERO,
            phases: PhaseTimes::default(),
            retry_after: None,
            response_head: String::new(),
            request_headers: Vec::new(),
            response_headers: Vec::new(),
        }
    }

    pub fn is_delivered(&self) -> bool {
        self.outcome == AttemptOutcome::Delivered
    }

    /// Returns true if the receiver answered 410, which disables the endpoint.
    pub fn is_gone(&self) -> bool {
        matches!(
            self.outcome,
            AttemptOutcome::Gone | AttemptOutcome::Aborted(410)
        )
    }
}

impl AttemptOutcome {
    pub const ABORTED: &str = "aborted";

    /// Returns the name of the outcome in metrics and in the log of attempts.
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
            Self::Unreachable(TransportFault::Excess) => "excess",
            Self::Forbidden(_) => "forbidden",
        }
    }

    /// Explains the failure in one sentence for the owner of the endpoint. `None` if the message was delivered.
    pub fn failure_sentence(self) -> Option<String> {
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
            Self::Unreachable(TransportFault::Dns) => {
                "the endpoint's name does not resolve".to_owned()
            }
            Self::Unreachable(TransportFault::Connect) => {
                "no connection to the endpoint could be made".to_owned()
            }
            Self::Unreachable(TransportFault::Tls) => {
                "no trusted TLS connection to the endpoint could be made".to_owned()
            }
            Self::Unreachable(TransportFault::Reset) => {
                "the connection ended without an HTTP answer".to_owned()
            }
            Self::Unreachable(TransportFault::Excess) => {
                "the endpoint sent more than an HTTP answer may have".to_owned()
            }
            Self::Forbidden(fault) => fault.to_string(),
        };
        Some(sentence)
    }

    /// Derives the outcome from a response. `aborts` is true if a header asks us not to send a message again.
    pub(super) fn from_response(status: u16, aborts: bool) -> Self {
        match status {
            200..=299 => Self::Delivered,
            other if aborts => Self::Aborted(other),
            410 => Self::Gone,
            other => Self::Rejected(other),
        }
    }

    pub(super) fn from_error(error: &ClientError) -> Self {
        let has_cause = |is: fn(&(dyn Error + 'static)) -> bool| causes(error).any(is);
        if has_cause(<dyn Error>::is::<AddressesRefused>) {
            Self::Forbidden(UrlFault::AddressRefused)
        } else if has_cause(is_timeout) {
            Self::TimedOut
        } else if has_cause(<dyn Error>::is::<ReadBudgetSpent>) {
            Self::Unreachable(TransportFault::Excess)
        } else if has_cause(<dyn Error>::is::<LookupError>) {
            Self::Unreachable(TransportFault::Dns)
        } else if !error.is_connect() {
            Self::Unreachable(TransportFault::Reset)
        } else if has_cause(is_tls_fault) {
            Self::Unreachable(TransportFault::Tls)
        } else {
            Self::Unreachable(TransportFault::Connect)
        }
    }
}

fn is_timeout(cause: &(dyn Error + 'static)) -> bool {
    io_kind(cause) == Some(io::ErrorKind::TimedOut)
}

fn is_tls_fault(cause: &(dyn Error + 'static)) -> bool {
    matches!(
        io_kind(cause),
        Some(io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
    )
}

fn io_kind(cause: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    cause.downcast_ref().map(io::Error::kind)
}

/// Returns the causes of an error, the outermost first.
fn causes<'a>(error: &'a ClientError) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause| match cause.downcast_ref() {
        // The source of an `io::Error` is not the error inside it, but the source of that inner error.
        Some(outer) => io::Error::get_ref(outer).map(|inner| inner as &(dyn Error + 'static)),
        None => (*cause).source(),
    })
}
