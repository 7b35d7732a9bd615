//! Sends a request and returns the response, or the reason why no response was received.
//!
//! The reason tells whether the authority may have received the request. If so, the call may have taken effect and must
//! not simply be repeated.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response};
use timing::clock::SharedClock;
use timing::retry_after::{RetryAfter, parse_http_date};

use crate::transport::failure::Cause;

/// The largest response body that is read, in bytes. The longest answer is the list of products.
pub(crate) const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    /// The time in the Date header; `None` if there is none or if it cannot be read.
    pub(crate) date: Option<Timestamp>,
    pub(crate) body: Vec<u8>,
}

/// Sends the request and reads the whole response. `timeout` only appears in the text of the error; the client itself
/// enforces the timeout.
pub(crate) async fn exchange(
    request: RequestBuilder,
    timeout: Duration,
    clock: &SharedClock,
) -> Result<RawResponse, Cause> {
    let response = request
        .send()
        .await
        .map_err(|error| transport_cause(&error, timeout))?;
    let status = response.status().as_u16();
    let retry_after = retry_after(response.headers(), clock.now());
    let date = date_header(response.headers());
    let body = read_body(response, timeout)
        .await?
        .ok_or(Cause::Malformed { status })?;
    Ok(RawResponse {
        status,
        retry_after,
        date,
        body,
    })
}

/// Returns the response's body, or `None` if the body exceeds the limit.
async fn read_body(mut response: Response, timeout: Duration) -> Result<Option<Vec<u8>>, Cause> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| transport_cause(&error, timeout))?
    {
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

fn transport_cause(error: &reqwest::Error, timeout: Duration) -> Cause {
    if error.is_dns() {
        Cause::Unreachable {
            problem: "its name does not resolve",
        }
    } else if error.is_connect() && is_handshake_failure(error) {
        Cause::Untrusted
    } else if error.is_connect() {
        Cause::Unreachable {
            problem: "no connection could be made",
        }
    } else if error.is_builder() {
        Cause::Unreachable {
            problem: "the request could not be formed",
        }
    } else if error.is_timeout() {
        Cause::TimedOut { after: timeout }
    } else {
        Cause::ConnectionReset
    }
}

/// True if the TLS handshake failed: `InvalidData`, perhaps wrapped in other errors. A connection that was closed
/// during the handshake (`UnexpectedEof`) says nothing about certificates: a gateway in front of a failed server does
/// so, too.
fn is_handshake_failure(error: &reqwest::Error) -> bool {
    fn is_handshake_error(error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::InvalidData
            || error
                .get_ref()
                .and_then(|inner| inner.downcast_ref())
                .is_some_and(is_handshake_error)
    }
    let mut sources = std::iter::successors(error.source(), |error| (*error).source());
    sources.any(|source| source.downcast_ref().is_some_and(is_handshake_error))
}

/// Returns the time of the Date header.
fn date_header(headers: &HeaderMap) -> Option<Timestamp> {
    parse_http_date(headers.get(DATE)?.to_str().ok()?)
}

/// Returns how long the response's Retry-After asks to wait.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let asked = RetryAfter::parse(headers.get(RETRY_AFTER)?.to_str().ok()?, date)?;
    Some(asked.wait(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_after_date_is_compared_with_the_date_of_the_response() {
        let mut headers = HeaderMap::new();
        headers.insert(
            RETRY_AFTER,
            "Wed, 21 Oct 2015 07:29:30 GMT".parse().unwrap(),
        );
        let now = "2015-10-21T07:29:00Z".parse().unwrap();
        assert_eq!(retry_after(&headers, now), Some(Duration::from_secs(30)));
        headers.insert(DATE, "Wed, 21 Oct 2015 07:28:00 GMT".parse().unwrap());
        assert_eq!(retry_after(&headers, now), Some(Duration::from_secs(90)));
    }
}
