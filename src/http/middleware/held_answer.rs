//! Answers a read with 304 and without a body if the caller already has the response. Each successful response gets an
//! entity tag, unless its handler has set one; the caller names the tag in `If-None-Match`. A streamed response gets no
//! tag. A response with `Cache-Control` gets none either: it holds a secret, or is a file that has its own tag.

use actix_web::Error;
use actix_web::HttpResponse;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, EntityTag, HeaderMap, TryIntoHeaderValue,
};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;

use crate::http::respond::entity_tag::{entity_tag, is_known_to_caller};

pub(crate) async fn tag_or_answer_not_modified(
    request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let response = next.call(request).await?;
    let headers = response.headers();
    if !is_read || response.status() != StatusCode::OK || headers.contains_key(CACHE_CONTROL) {
        return Ok(response);
    }
    let (request, response) = response.into_parts();
    let (mut response, body) = response.into_parts();
    let bytes = match body.try_into_bytes() {
        Ok(bytes) => bytes,
        Err(body) => return Ok(ServiceResponse::new(request, response.set_body(body))),
    };
    let headers = response.headers_mut();
    let tag = tag_from_handler(headers).unwrap_or_else(|| entity_tag(&bytes));
    headers.insert(ETAG, tag.clone().try_into_value()?);
    if !is_known_to_caller(&request, &tag) {
        return Ok(ServiceResponse::new(
            request,
            response.set_body(BoxBody::new(bytes)),
        ));
    }
    let mut not_modified = HttpResponse::NotModified().finish();
    for (name, value) in response.headers() {
        if name != CONTENT_TYPE {
            not_modified
                .headers_mut()
                .append(name.clone(), value.clone());
        }
    }
    Ok(ServiceResponse::new(request, not_modified))
}

/// Returns the tag that the handler has given to its answer.
fn tag_from_handler(headers: &HeaderMap) -> Option<EntityTag> {
    headers.get(ETAG)?.to_str().ok()?.parse().ok()
}
