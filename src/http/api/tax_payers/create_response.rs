//! The answer of a create: 201 with the new invoice, or 200 with the one that exists, which is no error.

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderName;

use crate::actors::taxpayer::command::{Created, Duplicate};
use crate::domain::invoice::invoice_view::InvoiceObject;
use crate::http::respond::envelope::ApiResponse;

/// How the invoice that exists compares with the one that was sent.
const DUPLICATE: HeaderName = HeaderName::from_static("x-duplicate");

/// Each endpoint has its own words for an invoice that exists.
pub(crate) fn answer(created: &Created, exists: &'static str) -> ApiResponse {
    let invoice = InvoiceObject::from(&created.invoice);
    let Some(duplicate) = created.duplicate else {
        return ApiResponse::with_status(StatusCode::CREATED, "Invoice created successfully", invoice);
    };
    let word = match duplicate {
        Duplicate::Identical => "identical",
        Duplicate::Different => "different",
    };
    ApiResponse::ok(exists, invoice).header(DUPLICATE, word)
}
