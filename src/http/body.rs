//! The body of a request as JSON. It is read when the handler asks for it, so that the right to call is
//! decided first; its size is counted while it comes in, and it may not take forever.

use std::future::{Ready, ready};
use std::time::Duration;

use actix_web::dev::{Payload, ServiceRequest};
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName};
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use futures_util::StreamExt;
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::http::code::Code;
use crate::http::error::ApiError;
use crate::http::json;
use crate::http::state::State;

/// What is reserved on the word of a header, before any byte has come.
const BYTES_RESERVED_MAX: usize = 64 * 1024;

/// A body that has not been read yet.
pub(crate) struct Body {
    payload: Payload,
    declared: Declared,
    bytes_max: usize,
    /// For the whole of it, so that a byte now and then does not help.
    timeout: Duration,
}

/// What the headers say about it.
#[derive(Debug)]
struct Declared {
    is_json: bool,
    length: Option<usize>,
}

impl FromRequest for Body {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let state = request.app_data::<web::Data<State>>().ok_or_else(|| ApiError::internal("no state"));
        let declared = Declared::of(request.headers());
        ready(state.map(|state| Self {
            payload: payload.take(),
            declared,
            bytes_max: state.settings.body_bytes_max,
            timeout: state.settings.body_timeout,
        }))
    }
}

impl Declared {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let plain = text(CONTENT_ENCODING).is_none_or(|coding| coding.eq_ignore_ascii_case("identity"));
        Self {
            is_json: plain && text(CONTENT_TYPE).is_none_or(names_json),
            length: text(CONTENT_LENGTH).and_then(|length| length.parse().ok()),
        }
    }
}

/// `application/json`, or any type whose structured syntax is JSON, in UTF-8 (RFC 8259, section 8.1).
fn names_json(content_type: &str) -> bool {
    let mut parts = content_type.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence.is_empty() || essence == "application/json" || essence.ends_with("+json");
    is_json && parts.filter_map(charset).all(|charset| charset.eq_ignore_ascii_case("utf-8"))
}

/// The value of a parameter of this name.
fn charset(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"'))
}

impl Body {
    /// With a limit of its own.
    #[must_use]
    pub(crate) fn up_to(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// The JSON object that the body is; no body at all is an empty one, whatever its headers say.
    pub(crate) async fn object_or_nothing(self) -> Result<Map<String, Value>, ApiError> {
        let is_json = self.declared.is_json;
        let text = self.in_time().await?;
        match text.is_empty() {
            true => Ok(Map::new()),
            false if is_json => json::object(&text),
            false => Err(no_json()),
        }
    }

    /// The JSON object that the body is.
    pub(crate) async fn object(self) -> Result<Map<String, Value>, ApiError> {
        json::object(&self.text().await?)
    }

    /// The whole body as it came, for who parses it elsewhere.
    pub(crate) async fn text(self) -> Result<Vec<u8>, ApiError> {
        if !self.declared.is_json {
            return Err(no_json());
        }
        self.in_time().await
    }

    async fn in_time(self) -> Result<Vec<u8>, ApiError> {
        let limit = self.timeout;
        timeout(limit, self.bytes()).await.map_err(|_| too_slow(limit))?
    }

    async fn bytes(mut self) -> Result<Vec<u8>, ApiError> {
        let expected = self.declared.length.unwrap_or_default();
        if expected > self.bytes_max {
            return Err(self.too_large());
        }
        let mut bytes = Vec::with_capacity(expected.min(BYTES_RESERVED_MAX));
        while let Some(chunk) = self.payload.next().await {
            let chunk = chunk.map_err(|_| malformed("The request body ended too early."))?;
            if bytes.len() + chunk.len() > self.bytes_max {
                return Err(self.too_large());
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn too_large(&self) -> ApiError {
        let message = format!("The request body is longer than {} bytes", self.bytes_max);
        ApiError::new(Code::PayloadTooLarge, message)
    }
}

/// A whole body before anybody asks for it, as long as any may be; what it is does not matter.
pub(crate) async fn whole(request: &mut ServiceRequest, state: &State) -> Result<Vec<u8>, ApiError> {
    let declared = Declared::of(request.headers());
    let (bytes_max, timeout) = (state.settings.keyed_bytes_max, state.settings.body_timeout);
    Body { payload: request.take_payload(), declared, bytes_max, timeout }.in_time().await
}

fn no_json() -> ApiError {
    let message = "The request body must be application/json in UTF-8, without content encoding";
    ApiError::new(Code::UnsupportedMediaType, message)
}

fn too_slow(limit: Duration) -> ApiError {
    let message = format!("The request body did not come in within {} s", limit.as_secs());
    ApiError::new(Code::RequestTimeout, message)
}

fn malformed(message: impl Into<String>) -> ApiError {
    ApiError::new(Code::MalformedJson, message)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn is_json(name: HeaderName, value: &'static str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        Declared::of(&headers).is_json
    }

    #[test]
    fn a_body_is_json_by_its_type_or_by_default() {
        assert!(Declared::of(&HeaderMap::new()).is_json);
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
