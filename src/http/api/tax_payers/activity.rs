//! The activity of a taxpayer's account: what people did on pages, and what was done with API keys.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::forms::activity::read_query;
use crate::http::forms::query::Query;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::activity::ActivityView;
use crate::store::operations::activity;

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/v1/tax-payers/activity").get(list_activity, || {
        doc(
            "list_activity",
            "Who did what with this account, newest first",
        )
        .with_note("Actions of people and keys on invoices, payments, keys, webhooks and people.")
        .query(
            "actor",
            "of one kind of actor, such as contact or taxpayer-key",
        )
        .query("cursor", "the `next_cursor` of the page before")
        .query_number("limit", 1, "50 by default, 100 at most")
        .with_response::<ActivityView>(200, "Activity retrieved successfully")
        .with_errors(&[ErrorCode::ValidationFailed])
    })]
}

/// GET /v1/tax-payers/activity: returns a page of the account's activity.
async fn list_activity(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let (filter, limit) = read_query(&query)?;
    let (entries, next_cursor) = activity::owned_by(&state.store, id, filter, limit).await?;
    Ok(ApiResponse::ok(
        "Activity retrieved successfully",
        ActivityView::new(entries, next_cursor),
    ))
}
