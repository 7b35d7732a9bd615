//! The body of every success, `{ success, message, data }`, and the headers of a success.

use actix_web::body::{BoxBody, MessageBody as _};
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, ContentType, ETAG, EntityTag, HeaderName, HeaderValue, LINK, LOCATION,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, Responder};
use futures_util::Stream;
use serde::Serialize;
use serde_json::Value;

use crate::http::respond::error::ApiError;

/// The header that holds a warning about unusual but accepted input. A response may have several of them.
pub(crate) const WARNING_HEADER: HeaderName = HeaderName::from_static("x-system-warning");

const NEXT_CURSOR_HEADER: HeaderName = HeaderName::from_static("x-next-cursor");

#[derive(Serialize)]
struct SuccessBody<M, D> {
    success: bool,
    message: M,
    data: D,
}

/// Returns the body of a success as JSON text.
pub(crate) fn success_text(
    message: impl Serialize,
    data: impl Serialize,
) -> Result<String, ApiError> {
    serde_json::to_string(&SuccessBody {
        success: true,
        message,
        data,
    })
    .map_err(ApiError::internal)
}

#[derive(Debug)]
pub(crate) struct ApiResponse(HttpResponse);

impl ApiResponse {
    pub(crate) fn ok(message: impl Serialize, data: impl Serialize) -> Self {
        Self::with_status(StatusCode::OK, message, data)
    }

    /// Returns a success whose body is made while it is sent. An error cuts the answer off.
    pub(crate) fn from_stream(
        parts: impl Stream<Item = Result<Bytes, ApiError>> + 'static,
    ) -> Self {
        Self(
            HttpResponse::Ok()
                .content_type(ContentType::json())
                .streaming(parts),
        )
    }

    pub(crate) fn with_status(
        status: StatusCode,
        message: impl Serialize,
        data: impl Serialize,
    ) -> Self {
        Self(HttpResponse::build(status).json(SuccessBody {
            success: true,
            message,
            data,
        }))
    }

    /// Adds a member beside `data`. Does nothing if the value is `None`, or if the body is made while it is sent.
    #[must_use]
    pub(crate) fn with_member(self, name: &str, value: Option<&impl Serialize>) -> Self {
        let Some(value) = value.and_then(|value| serde_json::to_string(value).ok()) else {
            return self;
        };
        Self(self.0.map_body(|_, body| match body.try_into_bytes() {
            // The body is an object, so it ends with a brace.
            Ok(bytes) => match bytes.strip_suffix(b"}") {
                Some(start) => {
                    let member = format!(",{}:{value}}}", Value::from(name));
                    BoxBody::new([start, member.as_bytes()].concat())
                }
                None => BoxBody::new(bytes),
            },
            Err(streamed) => streamed,
        }))
    }

    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.0
            .headers_mut()
            .append(name, HeaderValue::from_static(value));
        self
    }

    /// Tags the answer with more than the digest of its body.
    #[must_use]
    pub(crate) fn with_tag(mut self, tag: &EntityTag) -> Self {
        if let Ok(value) = HeaderValue::try_from(tag.to_string()) {
            self.0.headers_mut().insert(ETAG, value);
        }
        self
    }

    /// Adds one `X-System-Warning` header for each warning.
    #[must_use]
    pub(crate) fn warn(mut self, warnings: &[String]) -> Self {
        for warning in warnings {
            if let Some(value) = warning_value(warning) {
                self.0.headers_mut().append(WARNING_HEADER, value);
            }
        }
        self
    }

    /// Sets the `Location` header to a path. Sets no header if the path has characters that a header cannot hold.
    #[must_use]
    pub(crate) fn with_location(mut self, path: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(path) {
            self.0.headers_mut().insert(LOCATION, value);
        }
        self
    }

    /// Sets two headers: the cursor of the next page, and a link to the next page (RFC 8288).
    #[must_use]
    pub(crate) fn with_next_page(mut self, cursor: &str, path: &str) -> Self {
        let link = HeaderValue::from_str(&format!("<{path}>; rel=\"next\""));
        if let (Ok(cursor), Ok(link)) = (HeaderValue::from_str(cursor), link) {
            self.0.headers_mut().insert(NEXT_CURSOR_HEADER, cursor);
            self.0.headers_mut().insert(LINK, link);
        }
        self
    }

    /// Attaches a value to the response for our own middleware. The caller does not see it.
    #[must_use]
    pub(crate) fn with_extension<T: 'static>(mut self, mark: T) -> Self {
        self.0.extensions_mut().insert(mark);
        self
    }

    /// Forbids caches from storing the response, because it carries a secret.
    #[must_use]
    pub(crate) fn forbid_storing(self) -> Self {
        self.with_header(CACHE_CONTROL, "no-store")
    }
}

/// Returns a warning as the value of a header. Each character that a header cannot hold is replaced by `?`.
pub(crate) fn warning_value(text: &str) -> Option<HeaderValue> {
    let sendable: String = text
        .chars()
        .map(|letter| {
            if letter == ' ' || letter.is_ascii_graphic() {
                letter
            } else {
                '?'
            }
        })
        .collect();
    HeaderValue::from_str(&sendable).ok()
}

impl From<ApiResponse> for HttpResponse {
    fn from(answer: ApiResponse) -> Self {
        answer.0
    }
}

impl Responder for ApiResponse {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_warning_is_a_header_of_printable_ascii() {
        let answer = ApiResponse::ok("", ())
            .warn(&["unknown field: caf\u{e9}\r\nx: y".into(), "second".into()]);
        let warnings: Vec<_> = answer
            .0
            .headers()
            .get_all(WARNING_HEADER)
            .map(|value| value.to_str().unwrap())
            .collect();
        assert_eq!(warnings, ["unknown field: caf???x: y", "second"]);
    }

    #[test]
    fn an_answer_with_a_secret_is_not_stored() {
        assert_eq!(
            ApiResponse::ok("", ())
                .forbid_storing()
                .0
                .headers()
                .get(CACHE_CONTROL)
                .unwrap(),
            "no-store"
        );
    }
}
