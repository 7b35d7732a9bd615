//! The API document as it is sent. It is large and anybody may ask for it, so its text, its compressed forms and its
//! entity tag are made once per process, each at the first request that needs it.

use std::sync::OnceLock;

use actix_http::encoding::Encoder;
use actix_web::HttpResponse;
use actix_web::body::to_bytes;
use actix_web::http::header::{ContentEncoding, EntityTag};
use actix_web::web::Bytes;
use tokio::sync::OnceCell;

use crate::http::respond::entity_tag::entity_tag;
use crate::http::respond::error::ApiError;

/// The API document, for request handlers.
pub(crate) struct ApiDocument {
    text: fn() -> &'static str,
    tag: OnceLock<EntityTag>,
    brotli: OnceCell<Bytes>,
    gzip: OnceCell<Bytes>,
    deflate: OnceCell<Bytes>,
}

impl ApiDocument {
    pub(crate) const fn new(text: fn() -> &'static str) -> Self {
        Self {
            text,
            tag: OnceLock::new(),
            brotli: OnceCell::const_new(),
            gzip: OnceCell::const_new(),
            deflate: OnceCell::const_new(),
        }
    }

    pub(crate) fn tag(&self) -> &EntityTag {
        self.tag
            .get_or_init(|| entity_tag((self.text)().as_bytes()))
    }

    /// Returns the document in this encoding. An encoding that the service does not have gives the plain text.
    pub(crate) async fn bytes(&self, encoding: ContentEncoding) -> Result<Bytes, ApiError> {
        let text = (self.text)();
        let kept = match encoding {
            ContentEncoding::Brotli => &self.brotli,
            ContentEncoding::Gzip => &self.gzip,
            ContentEncoding::Deflate => &self.deflate,
            _ => return Ok(Bytes::from_static(text.as_bytes())),
        };
        kept.get_or_try_init(|| compress(text, encoding))
            .await
            .cloned()
    }
}

/// Compresses a text as the middleware does that compresses other answers.
async fn compress(text: &'static str, encoding: ContentEncoding) -> Result<Bytes, ApiError> {
    let plain = HttpResponse::Ok().body(text);
    let packed = plain.map_body(|head, body| Encoder::response(encoding, head, body));
    to_bytes(packed.into_body())
        .await
        .map_err(ApiError::internal)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::sync::LazyLock;

    use flate2::read::GzDecoder;

    use super::*;

    fn text() -> &'static str {
        static TEXT: LazyLock<String> = LazyLock::new(|| "a document ".repeat(1_000));
        &TEXT
    }

    #[actix_web::test]
    async fn each_form_is_made_once_and_holds_the_text() {
        let document = ApiDocument::new(text);
        for encoding in [
            ContentEncoding::Brotli,
            ContentEncoding::Gzip,
            ContentEncoding::Deflate,
            ContentEncoding::Identity,
        ] {
            let first = document.bytes(encoding).await.unwrap();
            let again = document.bytes(encoding).await.unwrap();
            assert_eq!(first.as_ptr(), again.as_ptr(), "{encoding:?}");
            let is_plain = encoding == ContentEncoding::Identity;
            assert_eq!(first == text().as_bytes(), is_plain, "{encoding:?}");
            assert_eq!(first.len() < text().len(), !is_plain, "{encoding:?}");
        }
        let gzip = document.bytes(ContentEncoding::Gzip).await.unwrap();
        let mut unpacked = String::new();
        GzDecoder::new(&gzip[..])
            .read_to_string(&mut unpacked)
            .unwrap();
        assert_eq!(unpacked, text());
        assert_eq!(document.tag(), &entity_tag(text().as_bytes()));
    }
}
