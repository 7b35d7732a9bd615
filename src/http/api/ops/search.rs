//! The search of operators.

use actix_web::web;

use crate::domain::access::caller::OpsViewer;
use crate::http::forms::query::Query;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::search::{self, FoundObject};
use crate::http::state::ApiState;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/search").get(search_objects, || {
        doc("search", "What a text names, with where it is shown")
            .with_note(
                "Write a taxpayer's id or tax number before an invoice number or an event's id to look there only. \
                 A trace id names the runs, the events and the audit entries that its requests caused; so does the id of a \
                 request that is a UUID and began its trace. Other request ids are in the log, each with its trace id.",
            )
            .query("q", "an IRN, an invoice number, a taxpayer, or the id of an event, a run, a reconciliation, a dead letter, an outage, a replica, a request or a trace")
            .with_list_response::<FoundObject>("Search carried out successfully")
    })]
}

/// GET /ops/search?q=: lists the objects, such as taxpayers, invoices and runs, that the text `q` identifies. Without a
/// text, the list is empty.
async fn search_objects(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let objects = match query.trimmed_text("q") {
        Some(text) => search::find(&state, &text).await?,
        None => Vec::new(),
    };
    Ok(ApiResponse::ok("Search carried out successfully", objects))
}
