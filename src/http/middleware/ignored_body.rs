//! Warns of a body that an endpoint does not take, because its sender would otherwise believe that it had an effect.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{CONTENT_LENGTH, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest};

use crate::http::extract::body_text::BodyText;
use crate::http::respond::envelope::WARNING_HEADER;

const WARNING: &str = "ignored request body: this call takes none";

/// The body that some clients send in place of an empty one.
const EMPTY_OBJECT: &[u8] = b"{}";

pub(crate) async fn warn_of_ignored_body(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let mut response = next.call(request).await?;
    if has_ignored_body(response.request()) {
        let value = HeaderValue::from_static(WARNING);
        response.headers_mut().append(WARNING_HEADER, value);
    }
    Ok(response)
}

/// True if the policy has read a body that no handler has taken. The policy does not read the body of a GET, which no
/// handler takes, so for a GET the declared length decides.
fn has_ignored_body(request: &HttpRequest) -> bool {
    if let Some(text) = request.extensions().get::<BodyText>() {
        return has_content(&text.bytes);
    }
    let declared = request.headers().get(CONTENT_LENGTH);
    let length = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    matches!(*request.method(), Method::GET | Method::HEAD)
        && length.is_some_and(|length| length > EMPTY_OBJECT.len())
}

/// False for a body of blanks only, and for an object without members.
fn has_content(body: &[u8]) -> bool {
    let bytes = body.iter().filter(|byte| !byte.is_ascii_whitespace());
    let start: Vec<u8> = bytes.take(EMPTY_OBJECT.len() + 1).copied().collect();
    !start.is_empty() && start != EMPTY_OBJECT
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn an_empty_body_and_an_empty_object_cause_no_warning() {
        for (body, expected) in [
            ("", false),
            (" \r\n", false),
            ("{}", false),
            (" { \n }\n", false),
            ("{}{", true),
            ("{", true),
            ("[]", true),
            ("null", true),
            ("{ \"note\": 1 }", true),
        ] {
            assert_eq!(has_content(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn the_length_decides_only_where_no_body_is_read() {
        for (method, length, expected) in [
            (Method::GET, "0", false),
            (Method::GET, "2", false),
            (Method::GET, "3", true),
            (Method::HEAD, "3", true),
            (Method::GET, "odd", false),
            (Method::POST, "3", false),
        ] {
            let request = TestRequest::default().method(method.clone());
            let request = request.insert_header((CONTENT_LENGTH, length));
            let request = request.to_http_request();
            assert_eq!(has_ignored_body(&request), expected, "{method} {length}");
        }
    }
}
