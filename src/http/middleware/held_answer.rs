//! Reads whose answer the caller may have already. Each answer in JSON gets its tag, and 304 without a body is the
//! answer to a caller that names it. An answer that is made while it is sent has no tag, and neither has one that
//! nobody may store.

use actix_web::HttpResponse;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, ETAG, HeaderValue, TryIntoHeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, http::Method};

use crate::http::respond::entity_tag::{entity_tag, is_held};

/// An answer may be kept by the program that asked, and is asked for again before each use.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("private, no-cache");

pub(crate) async fn tag_answer(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let may_be_held = matches!(*request.method(), Method::GET | Method::HEAD);
    let response = next.call(request).await?;
    let headers = response.headers();
    if !may_be_held
        || response.status() != StatusCode::OK
        || headers.contains_key(ETAG)
        || headers.contains_key(CACHE_CONTROL)
    {
        return Ok(response);
    }
    let (request, response) = response.into_parts();
    let (mut response, body) = response.into_parts();
    let bytes = match body.try_into_bytes() {
        Ok(bytes) => bytes,
        Err(body) => return Ok(ServiceResponse::new(request, response.set_body(body))),
    };
    let tag = entity_tag(&bytes);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, ASK_AGAIN);
    headers.insert(ETAG, tag.clone().try_into_value()?);
    if !is_held(&request, &tag) {
        return Ok(ServiceResponse::new(
            request,
            response.set_body(BoxBody::new(bytes)),
        ));
    }
    let mut held = HttpResponse::NotModified().finish();
    for (name, value) in response.headers() {
        if name != actix_web::http::header::CONTENT_TYPE {
            held.headers_mut().append(name.clone(), value.clone());
        }
    }
    Ok(ServiceResponse::new(request, held))
}
