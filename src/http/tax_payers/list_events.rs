//! GET /v1/tax-payers/events: the event feed, the same log that the webhooks come from.

use actix_web::web;

use crate::domain::caller::TaxpayerCaller;
use crate::domain::fault::Fault;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
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
    let after = query.text("after").map_or(Ok(0), after)?;
    let limit = query.number("limit").filter(|limit| *limit > 0).unwrap_or(LIMIT_DEFAULT).min(LIMIT_MAX);
    let found = events::owned_by_after(&state.store, id, after, u64::from(limit) + 1).await?;
    let feed = Feed::new(found, after, limit as usize)?;
    Ok(Answer::ok("Events retrieved successfully", feed))
}

/// A number beyond the end finds nothing. What is no number is refused: read as zero, the whole log would be
/// sent again.
fn after(text: &str) -> Result<i64, ApiError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fault = || Fault::new("after", "integer", "The after parameter must be the sequence of an event.");
    if is_number { Ok(text.parse().unwrap_or(i64::MAX)) } else { Err(fault().into()) }
}
