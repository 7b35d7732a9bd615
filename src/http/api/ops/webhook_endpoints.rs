//! Webhook endpoints of all taxpayers, by their health.

use actix_web::web;

use crate::domain::access::caller::OpsViewer;
use crate::domain::events::endpoint_health::EndpointHealth;
use crate::http::forms::query::Query;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::listed_endpoint::ListedEndpoint;
use crate::http::views::paginator::Paginator;
use crate::store::webhooks::endpoint_list::{self, EndpointFilter};

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/ops/webhooks/endpoints").get(list_endpoints, || {
        doc(
            "list_endpoints",
            "Webhook endpoints of all taxpayers with their health",
        )
        .query_word("health", EndpointHealth::allowed_words, "of a health")
        .query("taxpayer_id", "of one taxpayer")
        .query(
            "cause",
            "the HTTP status of the last failed attempt, or its `last_failure` if there was no answer",
        )
        .query("host", "the host of the URL")
        .with_paging("100 at most")
        .with_page_response::<ListedEndpoint<'_>>("Webhook endpoints retrieved successfully")
        .with_errors(&[ErrorCode::ValidationFailed])
    })]
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /ops/webhooks/endpoints: lists the webhook endpoints of all taxpayers, or those in one state of health.
async fn list_endpoints(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let filter = read_filter(&query)?;
    let page = query.page(PER_PAGE_DEFAULT);
    let (endpoints, total) = endpoint_list::page(&state.store, &filter, page).await?;
    let items = endpoints.iter().map(ListedEndpoint::from).collect();
    Ok(ApiResponse::ok(
        "Webhook endpoints retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

/// The names of the query parameters that filter the list.
pub(crate) const FILTER_NAMES: [&str; 4] = ["health", "taxpayer_id", "cause", "host"];

/// Reads the filter of the list of webhook endpoints from the query string.
pub(crate) fn read_filter(query: &Query) -> Result<EndpointFilter, ApiError> {
    Ok(EndpointFilter {
        health: query.word(
            "health",
            EndpointHealth::parse,
            EndpointHealth::allowed_words,
        )?,
        taxpayer_id: query.taxpayer_id("taxpayer_id"),
        keys: None,
        cause: query.trimmed_text("cause"),
        host: query.trimmed_text("host"),
        is_troubled: false,
    })
}
