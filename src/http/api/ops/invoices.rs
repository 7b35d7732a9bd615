//! An invoice of any taxpayer as it was after an event.

use actix_web::web;

use crate::domain::access::caller::OpsViewer;
use crate::domain::invoice::history::History;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::invoice_version::InvoiceVersion;
use crate::store::accounts::taxpayers;
use crate::store::events;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/invoices/{irn}").get(get_invoice_as_of, || {
        doc(
            "get_invoice_as_of",
            "An invoice as it was after an event, and what the event changed",
        )
        .with_note("Contact data of people is hidden.")
        .query_number(
            "as_of",
            1,
            "the sequence of an event of the taxpayer; by default the last",
        )
        .with_response::<InvoiceVersion<'_>>(200, "Invoice retrieved successfully")
        .with_errors(&[ErrorCode::InvoiceNotFound, ErrorCode::ValidationFailed])
    })]
}

/// GET `/ops/invoices/{irn}?as_of=`: returns the invoice as it was after its last event up to the sequence `as_of`.
async fn get_invoice_as_of(
    state: web::Data<ApiState>,
    _: OpsViewer,
    irn: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let irn = path_ids::parse_irn(&irn)?;
    let as_of = query.whole_number("as_of", 1)?;
    let owner = taxpayers::find_by_service_id(&state.store, irn.service_id()).await?;
    let owner = owner.ok_or_else(ApiError::invoice_not_found)?;
    let events = events::find_owned_by_irn(&state.store, owner, &irn).await?;
    let history = History::new(&events).map_err(ApiError::internal)?;
    let entry = history
        .entry_at(as_of)
        .ok_or_else(ApiError::invoice_not_found)?
        .redact();
    Ok(ApiResponse::ok(
        "Invoice retrieved successfully",
        InvoiceVersion::new(owner, &entry),
    ))
}
