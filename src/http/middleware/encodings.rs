//! Serves requests whose `Accept-Encoding` allows no encoding that the service has. Their responses are not encoded, as
//! RFC 9110 (section 12.5.3) advises: a 406 would hide the outcome of a write.

use actix_web::Error;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{ACCEPT_ENCODING, AcceptEncoding, Encoding, Header as _};
use actix_web::middleware::Next;

/// The encodings of the middleware that compresses answers.
const ENCODINGS: [Encoding; 4] = [
    Encoding::identity(),
    Encoding::brotli(),
    Encoding::gzip(),
    Encoding::deflate(),
];

/// Removes the header `Accept-Encoding` if it allows none of the `ENCODINGS`. Must run before the middleware that
/// compresses answers, which would refuse the request.
pub(crate) async fn ignore_unknown_encodings(
    mut request: ServiceRequest,
    next: Next<BoxBody>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let has_no_common_encoding = AcceptEncoding::parse(&request)
        .is_ok_and(|accepted| accepted.negotiate(ENCODINGS.iter()).is_none());
    if has_no_common_encoding {
        request.headers_mut().remove(ACCEPT_ENCODING);
    }
    next.call(request).await
}
