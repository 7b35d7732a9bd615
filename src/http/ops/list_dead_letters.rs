//! GET /ops/webhooks/dead-letters: deliveries whose attempts are spent, of one taxpayer or of all.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::query::Query;
use crate::http::state::State;
use crate::http::views::delivery::DeadLetter;
use crate::http::views::paginator::Paginator;
use crate::store::webhooks::delivery_log;

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_dead_letters(
    state: web::Data<State>,
    _: OperatorCaller,
    query: Query,
) -> Result<Answer, ApiError> {
    let (taxpayer, page) = (query.taxpayer_id("taxpayer_id"), query.page(PER_PAGE_DEFAULT));
    let found = delivery_log::dead_page(&state.store, taxpayer, (page.number, page.per_page)).await?;
    let (found, total) = found;
    let items = found.iter().map(DeadLetter::from).collect();
    Ok(Answer::ok("Dead letters retrieved successfully", Paginator::new(page, total, items)))
}
