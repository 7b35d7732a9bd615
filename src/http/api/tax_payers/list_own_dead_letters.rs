//! GET /v1/tax-payers/webhook/dead-letters: what could not be delivered, why, and what to do about it.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::delivery::DeadLetter;
use crate::http::views::paginator::Paginator;
use crate::store::webhooks::delivery_log;

const PER_PAGE_DEFAULT: u64 = 10;

pub(crate) async fn list_own_dead_letters(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let (found, total) = delivery_log::dead_page(&state.store, Some(id), page).await?;
    let items = found.iter().map(DeadLetter::from).collect();
    Ok(ApiResponse::ok("Dead letters retrieved successfully", Paginator::new(page, total, items)))
}
