//! The `Prefer` header (RFC 7240) says how long a caller waits for a run. With `respond-async` the caller does not
//! wait. Without the header, the caller waits until the run ends, but no longer than the settings allow.

use std::future::{Ready, ready};
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::{FromRequest, HttpRequest};

use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

const PREFER_HEADER: HeaderName = HeaderName::from_static("prefer");
pub(crate) const PREFERENCE_APPLIED_HEADER: HeaderName =
    HeaderName::from_static("preference-applied");
pub(crate) const RESPOND_ASYNC: &str = "respond-async";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefer {
    pub(crate) wait: Duration,
    /// True if the caller prefers to get the run's address at once instead of waiting for the end of the run.
    pub(crate) is_async: bool,
}

impl FromRequest for Prefer {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let state = ApiState::from_request(request);
        let is_async = prefers_async(request.headers());
        ready(state.map(|state| Self {
            wait: if is_async {
                Duration::ZERO
            } else {
                state.settings.pipeline_wait
            },
            is_async,
        }))
    }
}

fn prefers_async(headers: &HeaderMap) -> bool {
    let preferences = headers
        .get_all(PREFER_HEADER)
        .filter_map(|value| value.to_str().ok());
    let mut words = preferences
        .flat_map(|text| text.split(','))
        .map(|part| part.split(';').next());
    words.any(|word| word.is_some_and(|word| word.trim().eq_ignore_ascii_case(RESPOND_ASYNC)))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn the_preference_is_found_among_others() {
        let prefers = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(PREFER_HEADER, HeaderValue::from_static(text));
            prefers_async(&headers)
        };
        assert!(prefers("respond-async") && prefers("wait=5, Respond-Async; x=1"));
        assert!(!prefers("wait=5") && !prefers("respond-asynchronously"));
    }
}
