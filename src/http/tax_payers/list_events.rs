//! GET /v1/tax-payers/events: the event feed, the same log that the webhooks come from.

use actix_web::web;

use crate::domain::caller::TaxpayerCaller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::query::Query;
use crate::http::state::State;
use crate::http::views::feed::Feed;
use crate::store::events;

const LIMIT_DEFAULT: u32 = 100;
const LIMIT_MAX: u32 = 1_000;

pub(crate) async fn list_events(
    state: web::Data<State>,
    TaxpayerCaller(id): TaxpayerCaller,
    query: Query,
) -> Result<Answer, ApiError> {
    let after = query.text("after").and_then(ident::number).unwrap_or(0);
    let limit = query.number("limit").filter(|limit| *limit > 0).unwrap_or(LIMIT_DEFAULT).min(LIMIT_MAX);
    let found = events::owned_by_after(&state.store, id, after, u64::from(limit) + 1).await?;
    let feed = Feed::new(found, after, limit as usize)?;
    Ok(Answer::ok("Events retrieved successfully", feed))
}
