//! Core: option lists and reference data.

use utoipa::openapi::path::HttpMethod::Get;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder};

use crate::http::code::Code;
use crate::http::openapi::operation::{Key, Operation};
use crate::http::openapi::schema;
use crate::http::views::choice::{Enums, InvoiceCategories};

pub(super) fn operations() -> Vec<Operation> {
    let items = ArrayBuilder::new().items(ObjectBuilder::new());
    vec![
        Operation::new(
            Get,
            "/v1/core/commons/invoice-categories",
            "invoice_categories",
            "Invoice categories",
        )
        .gives::<InvoiceCategories>(200, "Invoice categories retrieved successfully"),
        Operation::new(Get, "/v1/core/commons/enums", "enums", "Option lists of an integration record")
            .by(Key::Either)
            .gives::<Enums>(200, "Enums retrieved successfully"),
        Operation::new(
            Get,
            "/v1/core/resources/{list}",
            "resources",
            "A reference list, live from the authority",
        )
        .by(Key::Either)
        .shows(200, "Resources retrieved successfully", schema::envelope(items))
        .fails(&[Code::RouteNotFound, Code::AuthorityUnavailable, Code::AuthorityTimeout]),
    ]
}
