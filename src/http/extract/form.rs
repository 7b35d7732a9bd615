//! Reads the form of a page before the handler runs, within limits of size and time. The rights of the person are
//! looked up after that, so that a person whose rights end while the form arrives can do nothing with it.

use std::time::Duration;

use actix_web::dev::ServiceRequest;
use actix_web::web::{Bytes, Payload};
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use tokio::time::timeout;

use crate::http::extract::body;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// The largest form that a page posts, in bytes.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// A form as it was posted. The policy of the path leaves it in the extensions of the request.
#[derive(Debug)]
struct PostedForm(Bytes);

/// Reads the whole form within the timeout and leaves it for `take`.
pub(crate) async fn read_before_handler(
    request: &mut ServiceRequest,
    limit: Duration,
) -> Result<(), ApiError> {
    let mut payload = request.take_payload();
    let body = Payload::from_request(request.request(), &mut payload)
        .await
        .map_err(ApiError::internal)?;
    let read = timeout(limit, body.to_bytes_limited(FORM_BYTES_MAX)).await;
    let read = read.map_err(|_| body::too_slow_error(limit))?;
    let read =
        read.map_err(|_| ApiError::new(ErrorCode::PayloadTooLarge, "The form is too large"))?;
    let form = read.map_err(|error| malformed_error(&error))?;
    request.extensions_mut().insert(PostedForm(form));
    Ok(())
}

/// Returns the form of the request, and leaves it for `take`.
pub(crate) fn peek(request: &HttpRequest) -> Result<Bytes, ApiError> {
    let extensions = request.extensions();
    let form = extensions.get::<PostedForm>().map(|form| form.0.clone());
    form.ok_or_else(unread_form_error)
}

/// Takes the form out of the request and returns it. Fails if the policy of the path reads no form.
pub(crate) fn take(request: &HttpRequest) -> Result<Bytes, ApiError> {
    let form = request.extensions_mut().remove::<PostedForm>();
    let form = form.ok_or_else(unread_form_error)?;
    Ok(form.0)
}

fn unread_form_error() -> ApiError {
    ApiError::internal("the policy of this path reads no form")
}

pub(crate) fn malformed_error(error: &impl std::fmt::Display) -> ApiError {
    let message = "The form cannot be read. Go back, reload the page and send it again.";
    ApiError::new(ErrorCode::ValidationFailed, message).because(error)
}
