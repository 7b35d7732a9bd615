//! Reads the form of a page before the handler runs, within limits of size and time. The rights of the person are
//! looked up after that, so that a person whose rights end while the form arrives can do nothing with it.

use actix_web::dev::ServiceRequest;
use actix_web::web::{Bytes, BytesMut, Payload};
use actix_web::{FromRequest, HttpMessage, HttpRequest};
use futures_util::StreamExt as _;
use tokio::time::timeout;

use crate::http::extract::{body, nul};
use crate::http::limits::{BodyPermit, TextMemory};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// The largest form that a page posts, in bytes, unless its path accepts large forms.
const FORM_BYTES_MAX: usize = 64 * 1024;
/// The largest form that carries all lines of an invoice, or a file in base64. The browser encodes both once more.
const LARGE_FORM_BYTES_MAX: usize = 1024 * 1024;
/// The maximum number of fields of a form. A page searches all of them for each field that it reads.
const FORM_FIELDS_MAX: usize = 10_000;

/// The content of a form, which decides its maximum size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormContent {
    Fields,
    InvoiceLines,
    File,
}

/// A form as it was posted, with each NUL replaced. The policy of the path leaves it in the extensions of the request.
#[derive(Debug)]
struct PostedForm(Bytes);

impl PostedForm {
    fn new(mut form: BytesMut) -> Result<Self, ApiError> {
        let fields = form[..].split(|byte| *byte == b'&').count();
        if fields > FORM_FIELDS_MAX {
            return Err(too_large_error());
        }
        nul::replace_nul_in_form(&mut form);
        Ok(Self(form.freeze()))
    }
}

/// The memory reserved for a form that may be large. It is held until the request is answered.
struct FormPermit {
    _permit: Option<BodyPermit>,
}

/// Reads the whole form within the timeout and leaves it for `take_form`.
pub(crate) async fn read_before_handler(
    request: &mut ServiceRequest,
    state: &ApiState,
    content: FormContent,
) -> Result<(), ApiError> {
    let limit = state.settings.body_timeout;
    if content != FormContent::Fields {
        let result = timeout(limit, read_large_form(request, state)).await;
        return result.map_err(|_| body::too_slow_error(limit))?;
    }
    let mut payload = request.take_payload();
    let body = Payload::from_request(request.request(), &mut payload)
        .await
        .map_err(ApiError::internal)?;
    let form = timeout(limit, body.to_bytes_limited(FORM_BYTES_MAX)).await;
    let form = form.map_err(|_| body::too_slow_error(limit))?;
    let form = form.map_err(|_| too_large_error())?;
    let form = form.map_err(|error| malformed_error(&error))?;
    let form = PostedForm::new(BytesMut::from(form))?;
    request.extensions_mut().insert(form);
    Ok(())
}

/// Reads a form that may be large. Its memory is reserved while it arrives, because its sender is not known yet.
async fn read_large_form(request: &mut ServiceRequest, state: &ApiState) -> Result<(), ApiError> {
    let mut payload = request.take_payload();
    let mut room = TextMemory::new(None, None, LARGE_FORM_BYTES_MAX);
    let mut form = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk.map_err(|error| malformed_error(&error))?;
        let length = form.len() + chunk.len();
        if length > LARGE_FORM_BYTES_MAX {
            return Err(too_large_error());
        }
        room.reserve_up_to(&state.bodies, length).await?;
        form.extend_from_slice(&chunk);
    }
    let form = PostedForm::new(form)?;
    let mut extensions = request.extensions_mut();
    extensions.insert(form);
    extensions.insert(FormPermit {
        _permit: room.into_permit(),
    });
    Ok(())
}

fn too_large_error() -> ApiError {
    ApiError::new(ErrorCode::PayloadTooLarge, "The form is too large")
}

/// Returns the form of the request, and leaves it for `take_form`.
pub(crate) fn peek_form(request: &HttpRequest) -> Result<Bytes, ApiError> {
    let extensions = request.extensions();
    let form = extensions.get::<PostedForm>().map(|form| form.0.clone());
    form.ok_or_else(unread_form_error)
}

/// Takes the form out of the request and returns it. Fails if the policy of the path reads no form.
pub(crate) fn take_form(request: &HttpRequest) -> Result<Bytes, ApiError> {
    let form = request.extensions_mut().remove::<PostedForm>();
    let form = form.ok_or_else(unread_form_error)?;
    Ok(form.0)
}

fn unread_form_error() -> ApiError {
    ApiError::internal("the policy of this path reads no form")
}

pub(crate) fn malformed_error(error: &impl std::fmt::Display) -> ApiError {
    let message = "The form cannot be read. Go back, reload the page and send it again.";
    ApiError::new(ErrorCode::ValidationFailed, message).with_cause(error)
}
