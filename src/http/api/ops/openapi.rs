//! GET /openapi.json: the document of the API.

use std::future::{Ready, ready};

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;

use crate::http::openapi::document;

pub(crate) fn openapi() -> Ready<HttpResponse> {
    ready(HttpResponse::Ok().content_type(ContentType::json()).body(document::text()))
}
