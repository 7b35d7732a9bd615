//! An answer that is a file, not the envelope. Its `ETag` is the digest of its bytes, so that nobody fetches it twice.

use actix_web::body::BoxBody;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, HeaderValue,
};
use actix_web::{HttpRequest, HttpResponse, Responder};

use crate::http::respond::entity_tag::{entity_tag, is_held};

#[derive(Debug)]
pub(crate) struct FileAnswer {
    pub(crate) media_type: &'static str,
    /// The name under which a browser saves the file, of letters, digits and `-_.`.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Responder for FileAnswer {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        let tag = entity_tag(&self.bytes);
        let is_held = is_held(request, &tag);
        let mut answer = if is_held {
            HttpResponse::NotModified()
        } else {
            HttpResponse::Ok()
        };
        answer
            .insert_header((ETAG, tag.to_string()))
            .insert_header((CACHE_CONTROL, HeaderValue::from_static("private, no-cache")));
        if is_held {
            return answer.finish();
        }
        answer
            .insert_header((CONTENT_TYPE, self.media_type))
            .insert_header((
                CONTENT_DISPOSITION,
                format!("inline; filename=\"{}\"", self.name),
            ));
        answer.body(self.bytes)
    }
}
