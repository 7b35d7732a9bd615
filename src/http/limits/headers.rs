//! Adds the rate limit headers to the response of each counted request, and refuses a request over the limit.

use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::{HttpMessage, HttpRequest};

use crate::http::limits::quota::{Allowance, QuotaExceeded};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

const LIMIT_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
/// The time when the whole allowance is available again, in Unix seconds.
const RESET_HEADER: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Stores the remaining allowance in the request, for the headers of the response. Refuses a request over the limit.
pub(crate) fn store_allowance(
    request: &HttpRequest,
    counted: Result<Option<Allowance>, QuotaExceeded>,
) -> Result<(), ApiError> {
    let allowance = counted
        .as_ref()
        .map_or_else(|exceeded| Some(exceeded.allowance), |allowance| *allowance);
    if let Some(allowance) = allowance {
        request.extensions_mut().insert(allowance);
    }
    counted.map(drop).map_err(limit_error)
}

/// Returns the error for a request over the limit.
pub(crate) fn limit_error(exceeded: QuotaExceeded) -> ApiError {
    let message = "Too many requests; try again when Retry-After has passed";
    ApiError::new(ErrorCode::RateLimited, message).with_retry_after(exceeded.retry_after)
}

/// Adds the rate limit headers to the response of a counted request.
pub(crate) fn add_limit_headers(request: &HttpRequest, headers: &mut HeaderMap) {
    let allowance = request.extensions().get::<Allowance>().copied();
    let Some(Allowance {
        limit,
        remaining,
        full_at,
    }) = allowance
    else {
        return;
    };
    let reset = full_at.as_second() + i64::from(full_at.subsec_nanosecond() > 0);
    headers.insert(LIMIT_HEADER, limit.into());
    headers.insert(REMAINING_HEADER, remaining.into());
    headers.insert(RESET_HEADER, reset.into());
}
