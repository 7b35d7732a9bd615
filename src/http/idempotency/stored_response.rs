//! Stored responses, replayed with `idempotent-replayed: true`. Temporary failures are not stored.

use actix_web::HttpResponse;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, HeaderName, HeaderValue};

use crate::domain::access::claim::StoredResponse;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

const REPLAYED_HEADER: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Converts a response for storage. Returns `None` if the body is a stream or is not UTF-8.
pub(crate) fn to_stored_response(answer: HttpResponse<BoxBody>) -> Option<StoredResponse> {
    let status = answer.status().as_u16();
    let headers = answer
        .headers()
        .iter()
        .filter_map(|(name, value)| {
            let value = value.to_str().ok()?;
            Some((name.to_string(), value.to_owned()))
        })
        .collect();
    let body = answer.into_body().try_into_bytes().ok()?;
    Some(StoredResponse {
        status,
        headers,
        body: String::from_utf8(body.to_vec()).ok()?,
    })
}

/// Rebuilds the response that was stored.
pub(crate) fn rebuild_response(kept: StoredResponse) -> HttpResponse {
    let mut answer = HttpResponse::build(StatusCode::from_u16(kept.status).unwrap_or_default());
    for (name, value) in kept.headers {
        answer.append_header((name, value));
    }
    answer.body(kept.body)
}

/// Rebuilds the response that was stored, and marks it as a replay.
pub(crate) fn replayed_response(kept: StoredResponse) -> HttpResponse {
    let mut answer = rebuild_response(kept);
    answer
        .headers_mut()
        .insert(REPLAYED_HEADER, HeaderValue::from_static("true"));
    answer
}

/// Marks a response that the command stored in its own transaction, so that it is not stored again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AlreadyStored;

/// Returns true if the response is to be stored now: a success, except a 202 (the same request later returns the
/// outcome), a secret response (marked by `Cache-Control`) and a response that the command has already stored.
pub(crate) fn must_be_stored(answer: &HttpResponse) -> bool {
    let is_done = answer.status().is_success() && answer.status() != StatusCode::ACCEPTED;
    let is_in_the_books = answer.extensions().get::<AlreadyStored>().is_some();
    is_done && !is_in_the_books && !answer.headers().contains_key(CACHE_CONTROL)
}

/// Returns true if a repeated request would be refused again, as after a 409 or 422. A malformed body can be corrected
/// under the same key, and a wrong use of the key says nothing about the request.
pub(crate) fn is_final_refusal(error: &ApiError) -> bool {
    let is_form = matches!(
        error.code,
        ErrorCode::ValidationFailed
            | ErrorCode::IrnMalformed
            | ErrorCode::IrnServiceIdMismatch
            | ErrorCode::BatchTooLarge
            | ErrorCode::IdempotencyKeyReused
            | ErrorCode::IdempotencyInProgress
    );
    matches!(
        error.status,
        StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY
    ) && !is_form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_given_again_as_it_was() {
        let first = || {
            HttpResponse::Created()
                .insert_header(("content-type", "application/json"))
                .append_header(("x-system-warning", "one"))
                .append_header(("x-system-warning", "two"))
                .body("{\"success\":true}")
        };
        let again = replayed_response(to_stored_response(first()).unwrap());
        assert_eq!(again.headers().get(REPLAYED_HEADER).unwrap(), "true");
        let mut again = to_stored_response(again).unwrap();
        again
            .headers
            .retain(|(name, _)| name != REPLAYED_HEADER.as_str());
        let mut first = to_stored_response(first()).unwrap();
        again.headers.sort();
        first.headers.sort();
        assert_eq!(again, first);
    }

    #[test]
    fn decisions_are_kept_and_passing_failures_are_not() {
        let kept: Vec<_> = ErrorCode::ALL
            .iter()
            .filter(|code| is_final_refusal(&ApiError::new(**code, "")))
            .map(|code| code.as_str())
            .collect();
        insta::assert_snapshot!(kept.join("\n"));
        assert!(must_be_stored(&HttpResponse::Created().finish()));
        assert!(!must_be_stored(&HttpResponse::Accepted().finish()));
        assert!(!must_be_stored(
            &HttpResponse::Ok()
                .insert_header((CACHE_CONTROL, "no-store"))
                .finish()
        ));
    }
}
