//! GET /docs/: the document of the API for reading and trying, with everything it needs in the binary.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::http::header::{CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use actix_web::{HttpResponse, web};
use utoipa_swagger_ui::Config;

use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// Nothing but what this service serves itself runs, loads or is called, and nobody frames the page. The viewer sets
/// styles of elements, and draws its icons from `data:` URLs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

pub(crate) fn docs(file: web::Path<String>) -> Ready<Result<HttpResponse, ApiError>> {
    // No validator of somebody else's is told where this service stands.
    let config = Config::from("/openapi.json").validator_url("none");
    let found = utoipa_swagger_ui::serve(&file.into_inner(), Arc::new(config)).map_err(ApiError::internal);
    ready(found.and_then(|found| {
        let file = found.ok_or_else(|| ApiError::new(ErrorCode::RouteNotFound, "No such page"))?;
        let mut page = HttpResponse::Ok();
        page.content_type(file.content_type);
        page.insert_header((CONTENT_SECURITY_POLICY, POLICY));
        page.insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"));
        page.insert_header((REFERRER_POLICY, "no-referrer"));
        Ok(page.body(file.bytes.into_owned()))
    }))
}

/// Its pages name each other relative to a folder.
pub(crate) fn to_docs() -> Ready<HttpResponse> {
    ready(HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs/")).finish())
}
