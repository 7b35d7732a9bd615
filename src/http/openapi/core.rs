//! Core: option lists and reference data.

use utoipa::openapi::path::HttpMethod::Get;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder};

use crate::http::openapi::operation::{OperationDoc, RequiredKey};
use crate::http::openapi::schema;
use crate::http::respond::code::ErrorCode;
use crate::http::views::choice::{Enums, InvoiceCategories};

pub(super) fn operations() -> Vec<OperationDoc> {
    let items = ArrayBuilder::new().items(ObjectBuilder::new());
    vec![
        OperationDoc::new(
            Get,
            "/v1/core/commons/invoice-categories",
            "invoice_categories",
            "Invoice categories",
        )
        .gives::<InvoiceCategories>(200, "Invoice categories retrieved successfully"),
        OperationDoc::new(Get, "/v1/core/commons/enums", "enums", "Option lists of an integration record")
            .by(RequiredKey::Either)
            .gives::<Enums>(200, "Enums retrieved successfully"),
        OperationDoc::new(
            Get,
            "/v1/core/resources/{list}",
            "resources",
            "A reference list, live from the authority",
        )
        .by(RequiredKey::Either)
        .shows(200, "Resources retrieved successfully", schema::envelope(items))
        .fails(&[
            ErrorCode::RouteNotFound,
            ErrorCode::AuthorityUnavailable,
            ErrorCode::AuthorityTimeout,
        ]),
    ]
}
