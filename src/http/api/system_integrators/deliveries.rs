//! The deliveries of a taxpayer's webhook: list them, show the attempts of one, and deliver one event again.

use actix_web::web;

use crate::actors::taxpayer::commands::StartReplay;
use crate::domain::access::caller::IntegratorCaller;
use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::log_position::LogPosition;
use crate::domain::events::replay::{Replay, ReplayRange};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{EndpointKey, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::idempotency::IdempotentRequest;
use crate::http::openapi::{OperationDoc, doc};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::delivery::{DeliveryView, FullAttemptView};
use crate::http::views::paginator::Paginator;
use crate::http::views::replay::ReplayView;
use crate::store::events;
use crate::store::webhooks::delivery_log;
use crate::store::webhooks::delivery_log::DeliveryFilter;

pub(crate) fn paths() -> Vec<Path> {
    let deliveries_path = "/v1/system-integrators/taxpayers/{id}/webhook/deliveries";
    let attempts_path =
        "/v1/system-integrators/taxpayers/{id}/webhook/deliveries/{delivery_id}/attempts";
    let replay_path =
        "/v1/system-integrators/taxpayers/{id}/webhook/deliveries/{delivery_id}/replay";
    vec![
        path(deliveries_path).get(list_deliveries, || {
            describe_delivery_list(doc(
                "list_deliveries",
                "The log of deliveries, newest first",
            ))
        }),
        path(attempts_path).get(list_attempts, || {
            doc(
                "list_delivery_attempts",
                "The last 50 attempts at a delivery with their headers, \
                 oldest first",
            )
            .with_note(
                "Of the headers of a request, and of those of its \
                 response, the first 4 KiB are kept. Credentials and \
                 cookies stand as `(hidden)`, and of a signature the \
                 first characters.",
            )
            .with_list_response::<FullAttemptView<'_>>("Delivery attempts retrieved successfully")
            .with_errors(&[ErrorCode::DeliveryNotFound, ErrorCode::TaxpayerNotFound])
        }),
        path(replay_path).post(replay_delivery, || {
            doc("replay_delivery", "Deliver one event again")
                .with_note("Starts a new series of attempts for this delivery.")
                .with_response::<ReplayView>(200, "Webhook delivery queued successfully")
                .with_idempotency_key()
                .with_errors(&[ErrorCode::DeliveryNotFound, ErrorCode::WebhookNotConfigured])
                .with_errors(&[ErrorCode::InvalidTransition, ErrorCode::TaxpayerNotFound])
        }),
    ]
}

pub(super) fn describe_delivery_list(doc: OperationDoc) -> OperationDoc {
    doc.with_note(
        "A delivery is one event on its way to an endpoint, with its state and its attempts.",
    )
    .with_paging("15 by default, 100 at most")
    .query_word("state", DeliveryState::allowed_words, "of a state")
    .query("event", "the name of an event")
    .query("irn", "the IRN of an invoice")
    .query("since", "a sequence, or a moment as RFC 3339 writes it")
    .with_page_response::<DeliveryView<'_>>("Webhook deliveries retrieved successfully")
    .with_errors(&[ErrorCode::ValidationFailed, ErrorCode::TaxpayerNotFound])
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /v1/system-integrators/taxpayers/{id}/webhook/deliveries: lists deliveries, newest event first.
async fn list_deliveries(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &id).await?;
    deliveries_response(&state, taxpayer.id, taxpayer.id.into(), &query).await
}

pub(super) async fn deliveries_response(
    state: &ApiState,
    taxpayer: TaxpayerId,
    endpoint: EndpointKey,
    query: &Query,
) -> Result<ApiResponse, ApiError> {
    let (filter, since) = read_filter(query)?;
    let since = match since {
        Some(since) => Some(events::sequence_at_position(&state.store, taxpayer, since).await?),
        None => None,
    };
    let page = query.page(PER_PAGE_DEFAULT);
    let filter = DeliveryFilter {
        since,
        endpoint: Some(endpoint),
        ..filter
    };
    let (deliveries, total) =
        delivery_log::page_owned_by(&state.store, taxpayer, filter, page).await?;
    let items = deliveries.iter().map(DeliveryView::from).collect();
    Ok(ApiResponse::ok(
        "Webhook deliveries retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

/// Reads the filter, and separately the log position of `since`, for which the caller looks up the sequence.
fn read_filter(query: &Query) -> Result<(DeliveryFilter, Option<LogPosition>), Faults> {
    let state = query.word("state", DeliveryState::parse, DeliveryState::allowed_words);
    match (state, query.log_position("since")) {
        (Ok(state), Ok(since)) => {
            let event = query.trimmed_text("event");
            let irn = query.trimmed_text("irn");
            Ok((
                DeliveryFilter {
                    state,
                    event,
                    irn,
                    ..DeliveryFilter::default()
                },
                since,
            ))
        }
        (state, since) => Err([state.err(), since.err()].into_iter().flatten().collect()),
    }
}

/// GET /v1/system-integrators/taxpayers/{id}/webhook/deliveries/{delivery_id}/attempts: shows the attempts at a
/// delivery to any endpoint of the taxpayer.
async fn list_attempts(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    path: web::Path<(String, String)>,
) -> Result<ApiResponse, ApiError> {
    let (taxpayer, delivery) = path.into_inner();
    let taxpayer = path_ids::find_taxpayer(&state, integrator, &taxpayer).await?;
    let id = path_ids::parse_uuid(&delivery).ok_or(Refusal::DeliveryNotFound)?;
    let delivery = delivery_log::find_logged_owned_by_id(&state.store, taxpayer.id, id).await?;
    let delivery = delivery.ok_or(Refusal::DeliveryNotFound)?;
    let views: Vec<_> = delivery
        .attempts
        .iter()
        .map(FullAttemptView::from)
        .collect();
    Ok(ApiResponse::ok(
        "Delivery attempts retrieved successfully",
        views,
    ))
}

/// POST /v1/system-integrators/taxpayers/{id}/webhook/deliveries/{delivery_id}/replay: delivers an event again.
async fn replay_delivery(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    idempotent: IdempotentRequest,
    ids: web::Path<(String, String)>,
) -> Result<ApiResponse, ApiError> {
    let delivery = path_ids::find_delivery(&state, integrator, &ids).await?;
    let command = StartReplay {
        endpoint: delivery.endpoint,
        range: ReplayRange::for_event(delivery.sequence),
        by: None,
    };
    idempotent
        .answer_once(
            &state.taxpayers,
            delivery.taxpayer_id,
            command,
            |replay: &Replay| {
                ApiResponse::ok(
                    "Webhook delivery queued successfully",
                    ReplayView::from(replay),
                )
            },
        )
        .await
}
