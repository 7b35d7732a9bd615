//! Reads the body of a request as JSON, within limits of size, time and memory.

use std::future::{Ready, ready};
use std::ops::Deref;
use std::time::Duration;

use actix_web::dev::{Payload, ServiceRequest};
use actix_web::http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName,
};
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures_util::StreamExt;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::domain::access::payer::PayingAccount;
use crate::http::extract::body_text::BodyText;
use crate::http::extract::json;
use crate::http::limits::{BodyPermit, TextMemory};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;

/// The maximum number of characters of a header that an error message shows.
const HEADER_CHARS_SHOWN_MAX: usize = 100;

/// A body that has not been parsed yet.
pub(crate) struct Body {
    source: BodySource,
    content_headers: ContentHeaders,
    bytes_max: usize,
    account: Option<PayingAccount>,
    state: web::Data<ApiState>,
}

enum BodySource {
    Unread(Payload),
    /// The policy of the path has read the body, because it looks the key up again after the body has arrived.
    Read(BodyText),
}

/// The kind of body that a path accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Json,
    /// A file of any type. The handler decides which types it takes.
    File,
}

/// The properties of a body according to the headers of the request.
#[derive(Debug)]
struct ContentHeaders {
    /// The header with the type or encoding that the path does not accept; `None` if the path accepts both.
    refused_header: Option<Box<str>>,
    length: Option<usize>,
}

/// The JSON object in a body, with its reserved memory.
#[derive(Debug)]
pub(crate) struct JsonObject {
    members: Map<String, Value>,
    _room: Option<BodyPermit>,
}

impl From<Map<String, Value>> for JsonObject {
    /// Makes an object from members that did not come from a request. It has no reserved memory.
    fn from(members: Map<String, Value>) -> Self {
        Self {
            members,
            _room: None,
        }
    }
}

impl Deref for JsonObject {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.members
    }
}

impl FromRequest for Body {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let text = request.extensions_mut().remove::<BodyText>();
        let source = text.map_or_else(|| BodySource::Unread(payload.take()), BodySource::Read);
        let state = ApiState::from_request(request);
        ready(state.map(|state| Self {
            source,
            content_headers: ContentHeaders::from_headers(request.headers(), BodyKind::Json),
            bytes_max: state.settings.body_bytes_max,
            account: request.extensions().get().copied(),
            state: state.clone(),
        }))
    }
}

impl ContentHeaders {
    fn from_headers(headers: &HeaderMap, kind: BodyKind) -> Self {
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let coding =
            text(CONTENT_ENCODING).filter(|coding| !coding.eq_ignore_ascii_case("identity"));
        let other_type = text(CONTENT_TYPE)
            .filter(|content_type| kind == BodyKind::Json && !is_json_type(content_type));
        let coding = coding.map(|coding| header_excerpt("content-encoding", coding));
        let refused_header =
            coding.or_else(|| other_type.map(|kind| header_excerpt("content-type", kind)));
        Self {
            refused_header: refused_header.map(String::into_boxed_str),
            length: text(CONTENT_LENGTH).and_then(|length| length.parse().ok()),
        }
    }

    /// Refuses a body whose type or encoding the path does not accept.
    fn check(&self) -> Result<(), ApiError> {
        self.refused_header.as_deref().map_or(Ok(()), |header| {
            let message = format!(
                "The request body must be application/json in UTF-8, without content encoding; you sent {header}"
            );
            Err(ApiError::new(ErrorCode::UnsupportedMediaType, message))
        })
    }
}

/// Returns the name and the first characters of a header, as an error message shows them.
pub(crate) fn header_excerpt(name: &str, value: &str) -> String {
    let excerpt: String = value.chars().take(HEADER_CHARS_SHOWN_MAX).collect();
    format!("{name}: {excerpt}")
}

/// Returns true if the headers say that the body is JSON in UTF-8, or say nothing about it.
pub(crate) fn is_json_body(headers: &HeaderMap) -> bool {
    let content_headers = ContentHeaders::from_headers(headers, BodyKind::Json);
    content_headers.refused_header.is_none()
}

/// Returns true for any type with JSON syntax and the charset UTF-8 (RFC 8259, section 8.1).
fn is_json_type(content_type: &str) -> bool {
    let mut parts = content_type.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence.is_empty() || essence == "application/json" || essence.ends_with("+json");
    is_json
        && parts
            .filter_map(charset)
            .all(|charset| charset.eq_ignore_ascii_case("utf-8"))
}

/// Returns the value of a `charset` parameter, or `None` for any other parameter.
fn charset(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    name.trim()
        .eq_ignore_ascii_case("charset")
        .then(|| value.trim().trim_matches('"'))
}

impl Body {
    /// Sets the largest body that is accepted, in bytes.
    #[must_use]
    pub(crate) fn with_bytes_max(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// Parses the body as a JSON object. An empty body gives an empty object, even if its content type is not JSON.
    pub(crate) async fn object_or_empty(self) -> Result<JsonObject, ApiError> {
        let state = self.state.clone();
        let text = self.read_in_time().await?;
        if text.bytes.is_empty() {
            return Ok(JsonObject {
                members: Map::new(),
                _room: None,
            });
        }
        Ok(parse_object(text, &state, |_| ()).await?.0)
    }

    /// Parses the body as a JSON object.
    pub(crate) async fn object(self) -> Result<JsonObject, ApiError> {
        Ok(self.object_and_form(|_| ()).await?.0)
    }

    /// Parses the body as a JSON object and passes the object to `read`. If the body is large, both happen on another
    /// thread, so handlers that expect large bodies use this method.
    pub(crate) async fn object_and_form<T: Send + 'static>(
        self,
        read: impl FnOnce(&Map<String, Value>) -> T + Send + 'static,
    ) -> Result<(JsonObject, T), ApiError> {
        let state = self.state.clone();
        parse_object(self.text().await?, &state, read).await
    }

    /// Returns the whole body as it was sent, for a handler that parses the body itself.
    pub(crate) async fn text(self) -> Result<BodyText, ApiError> {
        self.content_headers.check()?;
        self.read_in_time().await
    }

    /// Returns the file that the policy of the path has read, whatever its type.
    pub(crate) fn file(self) -> Result<BodyText, ApiError> {
        match self.source {
            BodySource::Read(text) => Ok(text),
            BodySource::Unread(_) => {
                Err(ApiError::internal("the policy of this path reads no file"))
            }
        }
    }

    /// Reads the whole body within the timeout, so that a slow trickle of bytes is cut off. A body that is not JSON is
    /// refused as soon as it is known not to be empty.
    async fn read_in_time(self) -> Result<BodyText, ApiError> {
        let limit = self.state.settings.body_timeout;
        match self.source {
            BodySource::Read(text) => Ok(text),
            BodySource::Unread(_) => timeout(limit, self.read())
                .await
                .map_err(|_| too_slow_error(limit))?,
        }
    }

    async fn read(self) -> Result<BodyText, ApiError> {
        let Self {
            source: BodySource::Unread(mut payload),
            bytes_max,
            account,
            state,
            content_headers,
        } = self
        else {
            return Err(ApiError::internal("the body was read before"));
        };
        if content_headers.length.is_some_and(|length| length > 0) {
            content_headers.check()?;
        }
        if content_headers
            .length
            .is_some_and(|length| length > bytes_max)
        {
            return Err(too_large_error(bytes_max));
        }
        let mut room = TextMemory::new(account, content_headers.length, bytes_max);
        let mut bytes = Vec::new();
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|_| malformed_error("The request body ended too early."))?;
            content_headers.check()?;
            let length = bytes.len() + chunk.len();
            if length > bytes_max {
                return Err(too_large_error(bytes_max));
            }
            let reserved = room.reserve_up_to(&state.bodies, length).await?;
            bytes.reserve_exact(reserved - bytes.len());
            bytes.extend_from_slice(&chunk);
        }
        Ok(BodyText::new(bytes, account, room.into_permit()))
    }
}

/// Parses the text as a JSON object and passes the object to `read`.
async fn parse_object<T: Send + 'static>(
    text: BodyText,
    state: &ApiState,
    read: impl FnOnce(&Map<String, Value>) -> T + Send + 'static,
) -> Result<(JsonObject, T), ApiError> {
    text.read(state, |text, room| {
        let members = json::parse_object(text)?;
        let result = read(&members);
        Ok((
            JsonObject {
                members,
                _room: Some(room),
            },
            result,
        ))
    })
    .await?
}

/// Reads the whole body of a request before the handler runs, and leaves it for the extractor. Does not check the
/// content. If no handler takes the body, its memory is released with the request.
pub(crate) async fn read_before_handler(
    request: &mut ServiceRequest,
    state: &web::Data<ApiState>,
    bytes_max: usize,
    kind: BodyKind,
) -> Result<(), ApiError> {
    let content_headers = ContentHeaders::from_headers(request.headers(), kind);
    let account = request.extensions().get().copied();
    let source = BodySource::Unread(request.take_payload());
    let body = Body {
        source,
        content_headers,
        bytes_max,
        account,
        state: state.clone(),
    };
    let text = body.read_in_time().await?;
    request.extensions_mut().insert(text);
    Ok(())
}

fn too_large_error(bytes_max: usize) -> ApiError {
    ApiError::new(
        ErrorCode::PayloadTooLarge,
        format!("The request body is longer than {bytes_max} bytes"),
    )
}

pub(super) fn too_slow_error(limit: Duration) -> ApiError {
    let message = format!(
        "The request body did not come in within {} s",
        limit.as_secs()
    );
    ApiError::new(ErrorCode::RequestTimeout, message)
}

fn malformed_error(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::MalformedJson, message)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn refusal(name: HeaderName, value: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        let content_headers = ContentHeaders::from_headers(&headers, BodyKind::Json);
        content_headers
            .check()
            .err()
            .map(|error| error.message.into())
    }

    fn is_json(name: HeaderName, value: &'static str) -> bool {
        refusal(name, value).is_none()
    }

    #[test]
    fn a_refusal_names_the_header_that_came() {
        for (name, value, end) in [
            (
                CONTENT_TYPE,
                "text/plain",
                "; you sent content-type: text/plain",
            ),
            (
                CONTENT_ENCODING,
                "gzip",
                "; you sent content-encoding: gzip",
            ),
        ] {
            let message = refusal(name, value).unwrap();
            assert!(message.ends_with(end), "{message}");
        }
    }

    #[test]
    fn a_body_is_json_by_its_type_or_by_default() {
        let no_headers = ContentHeaders::from_headers(&HeaderMap::new(), BodyKind::Json);
        assert_eq!(no_headers.refused_header, None);
        for json in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/json;x=1;Charset=\"UTF-8\"",
            "application/merge-patch+json",
        ] {
            assert!(is_json(CONTENT_TYPE, json), "{json}");
        }
        for other in [
            "text/plain",
            "application/xml",
            "application/jsonx",
            "multipart/form-data; boundary=x",
            "application/json; charset=iso-8859-1",
            "application/json; charset=utf-16",
            "application/json; charset=",
        ] {
            assert!(!is_json(CONTENT_TYPE, other), "{other}");
        }
        assert!(!is_json(CONTENT_ENCODING, "gzip"));
    }
}
