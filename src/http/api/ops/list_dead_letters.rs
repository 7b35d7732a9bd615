//! GET /ops/webhooks/dead-letters: deliveries whose attempts are spent, of one taxpayer or of all.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::delivery::DeadLetter;
use crate::http::views::paginator::Paginator;
use crate::store::webhooks::delivery_log;

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_dead_letters(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let (taxpayer, page) = (query.taxpayer_id("taxpayer_id"), query.page(PER_PAGE_DEFAULT));
    let found = delivery_log::dead_page(&state.store, taxpayer, page).await?;
    let (found, total) = found;
    let items = found.iter().map(DeadLetter::from).collect();
    Ok(ApiResponse::ok("Dead letters retrieved successfully", Paginator::new(page, total, items)))
}
