//! The body of every success, `{ success, message, data }`, and the headers of a success.

use actix_web::body::{BoxBody, MessageBody as _};
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, ContentType, ETAG, EntityTag, HeaderMap, HeaderName, HeaderValue, LINK, LOCATION,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, Responder};
use futures_util::Stream;
use serde::Serialize;
use serde_json::Value;

use crate::http::respond::error::ApiError;

/// The header that holds a warning about unusual but accepted input. A response may have several of them.
pub(crate) const WARNING_HEADER: HeaderName = HeaderName::from_static("x-system-warning");

/// The maximum number of warnings in the headers of a response. Common clients read at most 100 headers.
const WARNINGS_MAX: usize = 20;
/// The maximum number of bytes of all warning headers of a response, with their names. Some proxies accept at most 4
/// KiB of headers.
const WARNING_BYTES_MAX: usize = 3_000;
/// The end of a warning that was cut because it is too long.
const CUT_MARK: &[u8] = b"...";

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

    /// Returns a success whose `data` is this JSON text, with its spelling of numbers and its order of keys.
    pub(crate) fn with_data_text(message: &str, data: &str) -> Self {
        let message = Value::from(message);
        let body = format!(r#"{{"success":true,"message":{message},"data":{data}}}"#);
        Self(
            HttpResponse::Ok()
                .content_type(ContentType::json())
                .body(body),
        )
    }

    /// Returns a success whose body is made while it is sent. An error ends the response early.
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

    /// Adds a member next to `data`. Does nothing if the value is `None`, or if the body is made while it is sent.
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

    /// Sets the entity tag of the response. Without this call, the tag is the digest of the body, which depends on the
    /// parts of the object that the caller requested.
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
    pub(crate) fn with_extension<T: 'static>(mut self, value: T) -> Self {
        self.0.extensions_mut().insert(value);
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
    let header_text: String = text
        .chars()
        .map(|letter| {
            if letter == ' ' || letter.is_ascii_graphic() {
                letter
            } else {
                '?'
            }
        })
        .collect();
    HeaderValue::from_str(&header_text).ok()
}

/// Removes the warnings for which the headers of a response have no room. A last warning says how many were left out.
/// Use it once, when the response has all its warnings.
pub(crate) fn limit_warnings(headers: &mut HeaderMap) {
    let name_bytes = WARNING_HEADER.as_str().len();
    let mut shown_count = 0;
    let mut shown_bytes = 0;
    let mut left_out_count = 0;
    let warnings: Vec<_> = headers.remove(WARNING_HEADER).collect();
    for warning in warnings {
        let room = WARNING_BYTES_MAX.saturating_sub(shown_bytes + name_bytes);
        // The first warning is always shown, cut if it is too long.
        let warning = if shown_count == 0 {
            cut_warning(warning, room)
        } else {
            warning
        };
        if shown_count == WARNINGS_MAX || warning.len() > room {
            left_out_count += 1;
            continue;
        }
        shown_count += 1;
        shown_bytes += name_bytes + warning.len();
        headers.append(WARNING_HEADER, warning);
    }
    if left_out_count > 0 {
        let text =
            format!("warnings left out, for which the headers have no room: {left_out_count}");
        if let Some(value) = warning_value(&text) {
            headers.append(WARNING_HEADER, value);
        }
    }
}

/// Returns the warning, or its start if it has more than `bytes_max` bytes.
fn cut_warning(warning: HeaderValue, bytes_max: usize) -> HeaderValue {
    let bytes = warning.as_bytes();
    let kept_bytes = bytes_max.saturating_sub(CUT_MARK.len());
    let start = bytes.get(..kept_bytes).filter(|_| bytes.len() > bytes_max);
    let cut = start.and_then(|start| HeaderValue::from_bytes(&[start, CUT_MARK].concat()).ok());
    cut.unwrap_or(warning)
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
    fn a_text_of_data_is_sent_as_it_is() {
        let answer = ApiResponse::with_data_text("Say \"hi\"", r#"[{"b":1e3,"a":2.50}]"#);
        let bytes = answer.0.into_body().try_into_bytes().unwrap();
        let expected = r#"{"success":true,"message":"Say \"hi\"","data":[{"b":1e3,"a":2.50}]}"#;
        assert_eq!(bytes, expected);
    }

    #[test]
    fn warnings_that_the_headers_have_no_room_for_are_counted() {
        let (short, long, endless) = (10, 2_000, 200_000);
        for (lengths, shown_count, left_out_count) in [
            (vec![], 0, 0),
            (vec![short], 1, 0),
            (vec![short; WARNINGS_MAX], WARNINGS_MAX, 0),
            (vec![short; WARNINGS_MAX + 1], WARNINGS_MAX, 1),
            (vec![short; 1_000], WARNINGS_MAX, 1_000 - WARNINGS_MAX),
            (vec![endless], 1, 0),
            (vec![endless, short], 1, 1),
            (vec![short, endless, short], 2, 1),
            (vec![long, long, short, long], 2, 2),
        ] {
            let warnings: Vec<_> = lengths.iter().map(|length| "w".repeat(*length)).collect();
            let mut answer: HttpResponse = ApiResponse::ok("", ()).warn(&warnings).into();
            limit_warnings(answer.headers_mut());
            let kept = answer.headers().get_all(WARNING_HEADER);
            let mut kept: Vec<_> = kept.map(|value| value.to_str().unwrap()).collect();
            if left_out_count > 0 {
                let count = kept.pop().unwrap();
                assert!(
                    count.ends_with(&format!("no room: {left_out_count}")),
                    "{count}"
                );
            }
            assert_eq!(kept.len(), shown_count, "{lengths:?}");
            let bytes: usize = kept.iter().map(|text| text.len()).sum();
            assert!(bytes <= WARNING_BYTES_MAX, "{lengths:?}: {bytes}");
        }
    }

    #[test]
    fn a_warning_that_is_too_long_is_cut() {
        for (length, expected) in [(9, "wwwwwwwww"), (10, "wwwwwwwwww"), (11, "wwwwwww...")] {
            let warning = HeaderValue::from_str(&"w".repeat(length)).unwrap();
            assert_eq!(cut_warning(warning, 10), expected, "{length}");
        }
    }

    #[test]
    fn a_response_with_a_secret_is_not_stored() {
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
