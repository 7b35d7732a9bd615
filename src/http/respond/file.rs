//! An answer that is a file, not the envelope. The `ETag` of a file in memory is the digest of its bytes, so that
//! nobody fetches it twice. A file that is made while it is sent has none.

use actix_web::body::BoxBody;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, Responder};
use futures_util::Stream;

use crate::http::respond::entity_tag::{entity_tag, is_known_to_caller};
use crate::http::respond::envelope::{WARNING_HEADER, warning_value};
use crate::http::respond::error::ApiError;

/// Tells a browser to show a file or to save it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// The browser shows the file if it can.
    Inline,
    /// The browser saves the file.
    Download,
}

impl Disposition {
    fn header_value(self, name: &str) -> String {
        let word = match self {
            Self::Inline => "inline",
            Self::Download => "attachment",
        };
        format!("{word}; filename=\"{name}\"")
    }
}

/// Returns a download whose body is made while it is sent. An error cuts the answer off.
pub(crate) fn streamed_download(
    media_type: &'static str,
    name: &str,
    parts: impl Stream<Item = Result<Bytes, ApiError>> + 'static,
) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, HeaderValue::from_static("no-store")))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((CONTENT_TYPE, media_type))
        .insert_header((
            CONTENT_DISPOSITION,
            Disposition::Download.header_value(name),
        ))
        .streaming(parts)
}

#[derive(Debug)]
pub(crate) struct FileAnswer {
    pub(crate) media_type: &'static str,
    /// The name under which a browser saves the file, of letters, digits and `-_.`.
    pub(crate) name: String,
    pub(crate) disposition: Disposition,
    pub(crate) bytes: Vec<u8>,
    /// Sentences about whatever is odd in the file.
    pub(crate) warnings: Vec<String>,
}

impl Responder for FileAnswer {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        let tag = entity_tag(&self.bytes);
        let is_held = is_known_to_caller(request, &tag);
        let mut answer = if is_held {
            HttpResponse::NotModified()
        } else {
            HttpResponse::Ok()
        };
        answer
            .insert_header((ETAG, tag.to_string()))
            .insert_header((CACHE_CONTROL, HeaderValue::from_static("private, no-cache")));
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
                self.disposition.header_value(&self.name),
            ));
        answer.body(self.bytes)
    }
}
