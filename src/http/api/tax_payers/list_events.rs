//! GET /v1/tax-payers/events: the event feed, the same log that the webhooks come from.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::kernel::fault::Faults;
use crate::http::forms::query::Query;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::feed::Feed;
use crate::store::events;

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// After which event, and how many at most.
fn place(query: &Query) -> Result<(i64, usize), Faults> {
    match (query.whole("after", 0), query.whole("limit", 1)) {
        (Ok(after), Ok(limit)) => {
            let limit = limit.map_or(LIMIT_DEFAULT, |limit| usize::try_from(limit).unwrap_or(LIMIT_MAX));
            Ok((after.unwrap_or(0), limit.min(LIMIT_MAX)))
        }
        (after, limit) => Err([after.err(), limit.err()].into_iter().flatten().collect()),
    }
}

pub(crate) async fn list_events(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let (after, limit) = place(&query)?;
    let (found, has_more) = events::part_owned_by(&state.store, id, after, limit).await?;
    let feed = Feed::new(found, after, has_more)?;
    Ok(ApiResponse::ok("Events retrieved successfully", feed))
}
