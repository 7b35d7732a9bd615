//! An answer that is a file, not the envelope. Its `ETag` is the digest of its bytes, so that nobody fetches it twice.

use actix_web::body::BoxBody;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE, ETAG, EntityTag, Header as _, HeaderValue,
    IF_NONE_MATCH, IfNoneMatch,
};
use actix_web::{HttpRequest, HttpResponse, Responder};
use sha2::{Digest, Sha256};

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
        let tag = EntityTag::new_strong(hex::encode(Sha256::digest(&self.bytes)));
        let is_held = has(request, &tag);
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

/// True if the caller says that it has these bytes.
fn has(request: &HttpRequest, tag: &EntityTag) -> bool {
    if !request.headers().contains_key(IF_NONE_MATCH) {
        return false;
    }
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|one| one.weak_eq(tag)),
        Err(_) => false,
    }
}
