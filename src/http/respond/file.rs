//! An answer that is a file, not the envelope. The `ETag` of a file in memory is the digest of its bytes, so that
//! no program fetches it twice. A file that is made while it is sent has none.

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

/// The types of files that a browser may show instead of saving them. They cannot hold anything that acts on a page.
const SHOWN_TYPES: [&str; 2] = ["application/pdf", "image/png"];

/// Marks the request of a person at a browser. Its file is private, and several people may share the browser, so the
/// file is not stored there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedByBrowser;

/// Returns the header that tells a browser to show a file or to save it.
fn content_disposition(media_type: &str, name: &str) -> String {
    let word = if SHOWN_TYPES.contains(&media_type) {
        "inline"
    } else {
        "attachment"
    };
    format!("{word}; filename=\"{name}\"")
}

/// Returns a download whose body is made while it is sent. An error cuts the answer off.
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
    /// Sentences about whatever is odd in the file.
    pub(crate) warnings: Vec<String>,
}

impl Responder for FileAnswer {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        let may_be_held = !request.extensions().contains::<AskedByBrowser>();
        let tag = entity_tag(&self.bytes);
        let is_held = may_be_held && is_known_to_caller(request, &tag);
        let mut answer = if is_held {
            HttpResponse::NotModified()
        } else {
            HttpResponse::Ok()
        };
        if may_be_held {
            answer
                .insert_header((ETAG, tag.to_string()))
                .insert_header((CACHE_CONTROL, HeaderValue::from_static("private, no-cache")));
        } else {
            answer.insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")));
        }
        for warning in self.warnings.iter().filter_map(|text| warning_value(text)) {
            answer.append_header((WARNING_HEADER, warning));
        }
        if is_held {
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
