//! The load that taxpayers cause: lists the taxpayers that load this replica most, and pauses one taxpayer on all
//! replicas.

use actix_web::web;
use supervision::Window;

use crate::actors::taxpayer::usage::{UsageCounts, UsageMeasure};
use crate::domain::access::caller::{OpsOperator, OpsViewer};
use crate::domain::invoice::invoice_view::precise_time;
use crate::domain::kernel::audit::OperatorRequest;
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::api::ops::supervision::read_time_window;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::{reader, reason};
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::replicas::taxpayer_pauses;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::taxpayer_usage::{TaxpayerPauseView, TopTaxpayer, TopTaxpayers};
use crate::store::accounts::taxpayers;

/// The maximum number of taxpayers in the list.
const TOP_MAX: usize = 20;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/top-taxpayers").get(list_top_taxpayers, || {
            doc("list_top_taxpayers", "The 20 taxpayers that use most of a replica")
                .with_note(
                    "The figures are those of the replica that answers, since its start. It counts in memory; of more than \
                     a thousand taxpayers within ten seconds it remembers the first by each measure.",
                )
                .query("by", "writes (the default), wait, runs, deliveries, refusals or throttled")
                .query("minutes", "1, 5 (the default) or 60: the time up to now that counts")
                .with_response::<TopTaxpayers>(200, "Taxpayers retrieved successfully")
                .with_errors(&[ErrorCode::ValidationFailed])
        }),
        path("/ops/taxpayers/{id}/pause").post(pause_taxpayer, || {
            doc("pause_taxpayer", "Take up nothing new of a taxpayer")
                .with_note(
                    "What the taxpayer, its people and its integrator write is answered 503 with Retry-After, and none of \
                     its runs is taken up. What is in hand ends, reads and deliveries go on, and keys can be ended. \
                     Every replica obeys within a second, also after a restart, until the taxpayer is resumed.",
                )
                .with_body(reason::read_required, example!("reason"))
                .with_response::<TaxpayerPauseView>(200, "Taxpayer paused successfully")
                .with_errors(&[ErrorCode::TaxpayerNotFound])
        }),
        path("/ops/taxpayers/{id}/resume").post(resume_taxpayer, || {
            doc("resume_taxpayer", "End the pause of a taxpayer")
                .with_note("Every replica obeys within a second. The runs that wait go on in the order of their deadlines.")
                .with_body(reason::read_required, example!("reason"))
                .with_response::<TaxpayerPauseView>(200, "Taxpayer resumed successfully")
                .with_errors(&[ErrorCode::TaxpayerNotFound])
        }),
    ]
}

/// GET /ops/top-taxpayers: lists the taxpayers that load this replica most, by a measure that the query chooses.
async fn list_top_taxpayers(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let measure = query.word("by", UsageMeasure::parse, UsageMeasure::allowed_words)?;
    let measure = measure.unwrap_or(UsageMeasure::Writes);
    let window = read_time_window(&query)?;
    let top = load_top_taxpayers(&state, measure, window).await;
    let view = TopTaxpayers {
        answered_by: state.replicas.identity().name.clone(),
        since: precise_time(state.replicas.started_at()),
        by: measure.as_str(),
        minutes: window.minutes(),
        taxpayers: top
            .into_iter()
            .map(|(id, name, counts)| TopTaxpayer::new(id, name, &counts))
            .collect(),
    };
    Ok(ApiResponse::ok("Taxpayers retrieved successfully", view))
}

/// Returns up to `TOP_MAX` taxpayers with the highest values of a measure, highest first. If the database fails, the
/// names are `None`.
pub(crate) async fn load_top_taxpayers(
    state: &ApiState,
    measure: UsageMeasure,
    window: Window,
) -> Vec<(TaxpayerId, Option<String>, UsageCounts)> {
    let top = state
        .taxpayers
        .usage()
        .top_taxpayers(measure, window, TOP_MAX);
    let ids: Vec<_> = top.iter().map(|(id, _)| *id).collect();
    let taxpayers_by_id = taxpayers::find_by_ids(state.store.reader(), &ids).await;
    let mut taxpayers_by_id = taxpayers_by_id.unwrap_or_default();
    top.into_iter()
        .map(|(id, counts)| {
            (
                id,
                taxpayers_by_id.remove(&id).map(|taxpayer| taxpayer.name),
                counts,
            )
        })
        .collect()
}

/// POST /ops/taxpayers/{id}/pause: pauses a taxpayer on all replicas. Its writes get 503 and its runs wait; its reads
/// and its webhook deliveries continue.
async fn pause_taxpayer(
    state: web::Data<ApiState>,
    operator: OpsOperator,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let PauseRequest { id, by, warnings } = read_pause_request(&state, operator, &id, body).await?;
    let message = if taxpayer_pauses::pause(&state, id, &by).await? {
        "Taxpayer paused successfully"
    } else {
        "Taxpayer was already paused"
    };
    Ok(pause_response(&state, id, message).warn(&warnings))
}

/// POST /ops/taxpayers/{id}/resume: ends the pause of a taxpayer, on all replicas.
async fn resume_taxpayer(
    state: web::Data<ApiState>,
    operator: OpsOperator,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let PauseRequest { id, by, warnings } = read_pause_request(&state, operator, &id, body).await?;
    let message = if taxpayer_pauses::resume(&state, id, &by).await? {
        "Taxpayer resumed successfully"
    } else {
        "Taxpayer was not paused"
    };
    Ok(pause_response(&state, id, message).warn(&warnings))
}

/// An operator's request to pause a taxpayer, or to end its pause.
struct PauseRequest {
    id: TaxpayerId,
    by: OperatorRequest,
    warnings: Vec<String>,
}

async fn read_pause_request(
    state: &ApiState,
    OpsOperator(operator_id): OpsOperator,
    id: &str,
    body: Body,
) -> Result<PauseRequest, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        reason::read_required,
    )?;
    let id = path_ids::existing_taxpayer_id(state, id).await?;
    let by = OperatorRequest {
        operator_id,
        reason: Some(form.value),
    };
    let warnings = form.warnings;
    Ok(PauseRequest { id, by, warnings })
}

fn pause_response(state: &ApiState, id: TaxpayerId, message: &'static str) -> ApiResponse {
    let pause = state.taxpayers.paused_taxpayers().find(id);
    ApiResponse::ok(message, TaxpayerPauseView::new(id, pause.as_ref()))
}
