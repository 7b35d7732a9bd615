//! The request log of a taxpayer.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::forms::query::Query;
use crate::http::forms::request_log::read_filter;
use crate::http::openapi::doc;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::request_log::RequestView;
use crate::store::operations::request_log::{self, ReadingAccount};

pub(crate) fn paths() -> Vec<Path> {
    vec![path("/v1/tax-payers/requests").get(list_requests, || {
        doc(
            "list_requests",
            "The requests made with the keys of this account, newest first",
        )
        .with_note(
            "Failures up to 100 a second, and good requests up to a few, for the days of the setting \
                 `http.request_log_days`. Bodies are kept up to 8 KiB, without secrets.",
        )
        .with_paging("25 by default, 100 at most")
        .query("status", "such as 422, or a class such as 4xx")
        .query("path", "the beginning of the path")
        .query(
            "route",
            "the pattern of the path, such as /v1/tax-payers/invoices/{id}",
        )
        .query("error_code", "such as VALIDATION_FAILED")
        .query("request_id", "the `x-request-id` of the answer")
        .query("since", "an RFC 3339 time; without an offset it is UTC")
        .with_page_response::<RequestView<'_>>("Requests retrieved successfully")
        .with_errors(&[ErrorCode::ValidationFailed])
    })]
}

const PER_PAGE_DEFAULT: u64 = 25;

/// GET /v1/tax-payers/requests: returns a page of the log. Entries that this process still holds in memory are written
/// to the log first; entries of other replicas may be missing for up to a second.
async fn list_requests(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let filter = read_filter(&query)?;
    let reader = ReadingAccount::Taxpayer(id);
    state.request_log.write_for_reader(&state.store).await;
    let (requests, total) =
        request_log::page_for_reader(&state.store, reader, filter, page).await?;
    let items = requests.iter().map(RequestView::from).collect();
    Ok(ApiResponse::ok(
        "Requests retrieved successfully",
        Paginator::new(page, total, items),
    ))
}
