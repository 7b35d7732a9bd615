//! GET /docs/: the document of the API for reading and trying, with everything it needs in the binary.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::http::header::LOCATION;
use actix_web::{HttpResponse, web};
use utoipa_swagger_ui::Config;

use crate::http::code::Code;
use crate::http::error::ApiError;

pub(crate) fn docs(file: web::Path<String>) -> Ready<Result<HttpResponse, ApiError>> {
    // No validator of somebody else's is told where this service stands.
    let config = Config::from("/openapi.json").validator_url("none");
    let found = utoipa_swagger_ui::serve(&file.into_inner(), Arc::new(config)).map_err(ApiError::internal);
    ready(found.and_then(|found| {
        let file = found.ok_or_else(|| ApiError::new(Code::RouteNotFound, "No such page"))?;
        Ok(HttpResponse::Ok().content_type(file.content_type).body(file.bytes.into_owned()))
    }))
}

/// Its pages name each other relative to a folder.
pub(crate) fn to_docs() -> Ready<HttpResponse> {
    ready(HttpResponse::PermanentRedirect().insert_header((LOCATION, "/docs/")).finish())
}
