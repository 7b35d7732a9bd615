//! GET /ops/outages: the outages of the authority, newest first, as all replicas saw them.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::query::Query;
use crate::http::state::State;
use crate::http::views::outage::OutageView;
use crate::http::views::paginator::Paginator;
use crate::store::operations::outages;

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_outages(
    state: web::Data<State>,
    _: OperatorCaller,
    query: Query,
) -> Result<Answer, ApiError> {
    let (page, now) = (query.page(PER_PAGE_DEFAULT), state.now());
    let (found, total) = outages::page(&state.store, (page.number, page.per_page)).await?;
    let told = outages::told_of(&state.store, &found).await?;
    let items = found.iter().map(|outage| OutageView::new(outage, &told, now)).collect();
    Ok(Answer::ok("Outages retrieved successfully", Paginator::new(page, total, items)))
}
