//! The encodings that callers accept. Requests whose `Accept-Encoding` allows no encoding that the service has are served
//! nevertheless. Their responses are not encoded, as RFC 9110 (section 12.5.3) advises: a 406 would hide the outcome of a
//! write.

use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, ContentEncoding, Encoding, Header as _,
};
use actix_web::middleware::Next;
use actix_web::{Error, HttpRequest};

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

/// Returns the encoding that the middleware that compresses answers chooses for this request, for an answer that is kept
/// in compressed form.
pub(crate) fn choose_encoding(request: &HttpRequest) -> ContentEncoding {
    let accepted = AcceptEncoding::parse(request).ok();
    match accepted.and_then(|accepted| accepted.negotiate(ENCODINGS.iter())) {
        Some(Encoding::Known(encoding)) => encoding,
        _ => ContentEncoding::Identity,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn the_encoding_is_the_one_that_the_caller_prefers() {
        for (accepted, expected) in [
            ("gzip", ContentEncoding::Gzip),
            ("br", ContentEncoding::Brotli),
            ("deflate", ContentEncoding::Deflate),
            ("gzip;q=0.5, br", ContentEncoding::Brotli),
            ("zstd, gzip;q=0.1", ContentEncoding::Gzip),
            ("identity", ContentEncoding::Identity),
            ("zstd, identity;q=0", ContentEncoding::Identity),
            ("odd odd", ContentEncoding::Identity),
        ] {
            let request = TestRequest::default()
                .insert_header((ACCEPT_ENCODING, accepted))
                .to_http_request();
            assert_eq!(choose_encoding(&request), expected, "{accepted}");
        }
        let without_header = TestRequest::default().to_http_request();
        assert_eq!(choose_encoding(&without_header), ContentEncoding::Identity);
    }
}
