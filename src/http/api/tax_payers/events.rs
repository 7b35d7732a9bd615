//! The event feed of a taxpayer, the catalogue of events, and the dead letters of the taxpayer's own webhook.

use actix_web::web;

use crate::actors::taxpayer::commands::StartReplay;
use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::events::replay::{Replay, ReplayRange};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::doc;
use crate::http::openapi::event_schemas::event_schemas;
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::delivery::DeadLetter;
use crate::http::views::feed::Feed;
use crate::http::views::paginator::Paginator;
use crate::http::views::replay::ReplayView;
use crate::http::views::webhook_event::{WebhookEventView, catalogue};
use crate::store::events;
use crate::store::webhooks::delivery_log;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/v1/tax-payers/webhook/dead-letters").get(list_own_dead_letters, || {
            doc(
                "list_own_dead_letters",
                "Notifications that could not be delivered, why, and what to do",
            )
            .with_note(
                "After the last attempt of its schedule a delivery is \
                 given up and stands here until it is replayed.",
            )
            .with_paging("10 by default, 100 at most")
            .with_page_response::<DeadLetter<'_>>("Dead letters retrieved successfully")
        }),
        path("/v1/tax-payers/webhook/dead-letters/{delivery_id}/replay").post(
            replay_own_dead_letter,
            || {
                doc("replay_own_dead_letter", "Deliver one of them again")
                    .with_note(
                        "Starts a new series of attempts for a delivery that \
                         was given up.",
                    )
                    .with_response::<ReplayView>(200, "Webhook delivery queued successfully")
                    .with_idempotency_key()
                    .with_errors(&[ErrorCode::DeliveryNotFound, ErrorCode::WebhookNotConfigured])
                    .with_errors(&[ErrorCode::InvalidTransition])
            },
        ),
        path("/v1/tax-payers/webhook-events").get(list_webhook_events, || {
            doc(
                "list_webhook_events",
                "Every event that a webhook can get: when it is sent, its schema and an example",
            )
            .with_note(
                "The catalogue of events. An endpoint gets those that \
                 it has enabled.",
            )
            .with_list_response::<WebhookEventView>("Webhook events retrieved successfully")
            .with_components(event_schemas())
        }),
        path("/v1/tax-payers/events").get(list_events, || {
            doc(
                "list_events",
                "Event feed: the log that the webhooks come from",
            )
            .with_note(
                "Whoever misses webhooks reads the log from the last \
                 known sequence number on. Each kind of event has a schema of \
                 its own, which `type` tells; the table shows the first.",
            )
            .query_number(
                "after",
                0,
                "the sequence after which to go on; 0 by default",
            )
            .query_number("limit", 1, "100 by default, 1,000 at most")
            .with_response::<Feed>(200, "Events retrieved successfully")
            .with_errors(&[ErrorCode::ValidationFailed])
        }),
    ]
}

/// GET /v1/tax-payers/webhook-events: returns the catalogue of events, which is the same for everybody.
async fn list_webhook_events(_: TaxpayerCaller) -> ApiResponse {
    std::future::ready(ApiResponse::ok(
        "Webhook events retrieved successfully",
        catalogue(),
    ))
    .await
}

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// Returns the sequence number after which the page of the feed starts, and the maximum number of events on the page.
fn read_feed_range(query: &Query) -> Result<(i64, usize), Faults> {
    match (
        query.whole_number("after", 0),
        query.whole_number("limit", 1),
    ) {
        (Ok(after), Ok(limit)) => {
            let limit = limit.map_or(LIMIT_DEFAULT, |limit| {
                usize::try_from(limit).unwrap_or(LIMIT_MAX)
            });
            Ok((after.unwrap_or(0), limit.min(LIMIT_MAX)))
        }
        (after, limit) => Err([after.err(), limit.err()].into_iter().flatten().collect()),
    }
}

/// GET /v1/tax-payers/events: returns a page of the taxpayer's event log.
async fn list_events(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let (after, limit) = read_feed_range(&query)?;
    let page = events::feed_page_owned_by(&state.store, id, after, limit).await?;
    let warning = if page.events.is_empty() && after > 0 {
        let log_end = events::log_head(state.store.reader(), id).await?.sequence;
        (after > log_end).then(|| beyond_end_warning(after, log_end))
    } else {
        None
    };
    let feed = Feed::new(page.events, after, page.has_more)?;
    let answer = ApiResponse::ok("Events retrieved successfully", feed);
    Ok(answer.warn(warning.as_slice()))
}

/// Returns the warning for a position that the log has not reached, such as one from before a backup was restored, or one
/// of another taxpayer. The events that get the sequences up to the position would be skipped.
fn beyond_end_warning(after: i64, log_end: i64) -> String {
    format!(
        "after is {after}, but the log ends at {log_end}: events up to {after} would be skipped; \
         read again from a position that the log has"
    )
}

const PER_PAGE_DEFAULT: u64 = 10;

/// GET /v1/tax-payers/webhook/dead-letters: lists the taxpayer's dead letters, each with the reason and the remedy.
async fn list_own_dead_letters(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let (deliveries, total) = delivery_log::dead_letter_page(&state.store, Some(id), page).await?;
    let items = deliveries.iter().map(DeadLetter::from).collect();
    Ok(ApiResponse::ok(
        "Dead letters retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

/// POST /v1/tax-payers/webhook/dead-letters/{delivery_id}/replay: the taxpayer queues a dead letter for delivery again.
async fn replay_own_dead_letter(
    state: web::Data<ApiState>,
    TaxpayerCaller(id): TaxpayerCaller,
    idempotent: IdempotentRequest,
    delivery_id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let delivery_id = path_ids::parse_uuid(&delivery_id).ok_or(Refusal::DeliveryNotFound)?;
    let dead_letter = delivery_log::find_dead_owned_by_id(&state.store, id, delivery_id).await?;
    let dead_letter = dead_letter.ok_or(Refusal::DeliveryNotFound)?;
    let command = StartReplay {
        endpoint: dead_letter.endpoint,
        range: ReplayRange::for_event(dead_letter.sequence),
        by: None,
    };
    idempotent
        .answer_once(&state.taxpayers, id, command, |replay: &Replay| {
            ApiResponse::ok(
                "Webhook delivery queued successfully",
                ReplayView::from(replay),
            )
        })
        .await
}
