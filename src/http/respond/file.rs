//! An answer that is a file, not the envelope. The `ETag` of a file in memory is the digest of its bytes, so that a
//! program need not fetch the same file twice. A file that is made while it is sent has no `ETag`.

use actix_web::body::BoxBody;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HeaderValue,
};
use actix_web::web::Bytes;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, Responder};
use futures_util::Stream;

use crate::http::respond::entity_tag::{entity_tag, is_known_to_caller};
use crate::http::respond::envelope::{WARNING_HEADER, warning_value};
use crate::http::respond::error::ApiError;

/// The file types that a browser may show instead of saving. Files of these types cannot run scripts in a page.
const INLINE_TYPES: [&str; 2] = ["application/pdf", "image/png"];

/// Marks the request of a person with a browser. Several people may share the browser, so a private file must not be
/// stored in its cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BrowserRequest;

/// Returns the header that tells a browser to show a file or to save it.
fn content_disposition(media_type: &str, name: &str) -> String {
    let disposition = if INLINE_TYPES.contains(&media_type) {
        "inline"
    } else {
        "attachment"
    };
    format!("{disposition}; filename=\"{name}\"")
}

/// Returns a download whose body is made while it is sent. An error ends the response early.
pub(crate) fn streamed_download(
    media_type: &'static str,
    name: &str,
    parts: impl Stream<Item = Result<Bytes, ApiError>> + 'static,
) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .insert_header((CONTENT_TYPE, media_type))
        .insert_header((CONTENT_DISPOSITION, content_disposition(media_type, name)))
        .streaming(parts)
}

#[derive(Debug)]
pub(crate) struct FileAnswer {
    pub(crate) media_type: &'static str,
    /// The name under which a browser saves the file, of letters, digits and `-_.`.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// Warnings about unusual values in the file.
    pub(crate) warnings: Vec<String>,
}

impl Responder for FileAnswer {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        let may_be_cached = !request.extensions().contains::<BrowserRequest>();
        let tag = entity_tag(&self.bytes);
        let is_cached = may_be_cached && is_known_to_caller(request, &tag);
        let mut answer = if is_cached {
            HttpResponse::NotModified()
        } else {
            HttpResponse::Ok()
        };
        if may_be_cached {
            answer
                .insert_header((ETAG, tag.to_string()))
                .insert_header((CACHE_CONTROL, HeaderValue::from_static("private, no-cache")));
        } else {
            answer.insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")));
        }
        for warning in self.warnings.iter().filter_map(|text| warning_value(text)) {
            answer.append_header((WARNING_HEADER, warning));
        }
        if is_cached {
            return answer.finish();
        }
        answer
            .insert_header((CONTENT_TYPE, self.media_type))
            .insert_header((
                CONTENT_DISPOSITION,
                content_disposition(self.media_type, &self.name),
            ));
        answer.body(self.bytes)
    }
}
