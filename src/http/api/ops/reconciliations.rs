//! Reconciliations, which compare a taxpayer's day with the authority's ledger: start one, list them, show one.

use actix_web::http::StatusCode;
use actix_web::web;
use database::page::Page;

use crate::domain::access::caller::{OpsOperator, OpsViewer};
use crate::domain::kernel::audit::OperatorRequest;
use crate::http::endpoint::{Path, path};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::extract::prefer::Prefer;
use crate::http::forms::query::Query;
use crate::http::forms::{reader, reconciliation};
use crate::http::openapi::{doc, example};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::reconciliation::{ReconciliationView, ReconciliationWithFindings};
use crate::store::operations::reconciliations;
use crate::store::operations::reconciliations::ReconciliationFilter;

pub(crate) fn endpoints() -> Vec<Path> {
    vec![
        path("/ops/reconciliations")
            .post(create_reconciliation, || {
                doc(
                    "create_reconciliation",
                    "Compare a taxpayer's day with the authority's ledger",
                )
                .with_note("Waits for its end as Submit does; `Prefer: respond-async` does not.")
                .takes(reconciliation::read, example!("create_reconciliation"))
                .gives::<ReconciliationWithFindings<'_>>(200, "Reconciliation ended")
                .gives::<ReconciliationWithFindings<'_>>(202, "Reconciliation queued successfully")
                .fails(&[ErrorCode::TaxpayerNotFound])
            })
            .get(list_reconciliations, || {
                doc("list_reconciliations", "What was compared, newest first")
                    .query("taxpayer_id", "of one taxpayer")
                    .query("day", "of one day, as YYYY-MM-DD")
                    .query(
                        "for_you",
                        "true: the latest of their days with differences that an operator has to decide",
                    )
                    .with_paging("100 at most")
                    .gives_page::<ReconciliationView<'_>>("Reconciliations retrieved successfully")
                    .fails(&[ErrorCode::ValidationFailed])
            }),
        path("/ops/reconciliations/{id}").get(get_reconciliation, || {
            doc("get_reconciliation", "One of them, with what it found")
                .with_paging("100 at most")
                .gives::<ReconciliationWithFindings<'_>>(
                    200,
                    "Reconciliation retrieved successfully",
                )
                .fails(&[ErrorCode::ReconciliationNotFound])
        }),
    ]
}

/// POST /ops/reconciliations: compares a taxpayer's day with the authority's ledger. Returns 202 if the comparison
/// takes longer than the caller waits.
async fn create_reconciliation(
    state: web::Data<ApiState>,
    OpsOperator(operator_id): OpsOperator,
    prefer: Prefer,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        reconciliation::read,
    )?;
    let by = OperatorRequest {
        operator_id,
        reason: form.value.reason,
    };
    let asked = state
        .reconciliations
        .request(form.value.taxpayer_id, form.value.day, Some(by))
        .await?;
    let one = state.reconciliations.wait(&asked, prefer.wait).await?;
    let (status, said) = if one.state.is_open() {
        (StatusCode::ACCEPTED, "Reconciliation queued successfully")
    } else {
        (StatusCode::OK, "Reconciliation ended")
    };
    let findings = reconciliations::findings(
        &state.store,
        &one,
        Page {
            number: 1,
            per_page: FINDINGS_MAX,
        },
    )
    .await?;
    let path = format!("/ops/reconciliations/{}", one.id);
    let answer = ApiResponse::with_status(
        status,
        said,
        ReconciliationWithFindings::new(&one, &findings),
    );
    Ok(answer.with_location(&path).warn(&form.warnings))
}

const PER_PAGE_DEFAULT: u64 = 15;

/// GET /ops/reconciliations: lists the reconciliations, newest first.
async fn list_reconciliations(
    state: web::Data<ApiState>,
    _: OpsViewer,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let page = query.page(PER_PAGE_DEFAULT);
    let filter = ReconciliationFilter {
        taxpayer_id: query.taxpayer_id("taxpayer_id"),
        day: query.date("day")?,
        needs_operator: query.flag("for_you")?,
    };
    let (found, total) = reconciliations::page(&state.store, filter, page).await?;
    let items = found.iter().map(ReconciliationView::from).collect();
    Ok(ApiResponse::ok(
        "Reconciliations retrieved successfully",
        Paginator::new(page, total, items),
    ))
}

/// Maximum number of findings that one response lists. The counts in the response include all findings.
const FINDINGS_MAX: u64 = 100;

/// GET /ops/reconciliations/{id}: returns a reconciliation with one page of the findings.
async fn get_reconciliation(
    state: web::Data<ApiState>,
    _: OpsViewer,
    id: web::Path<String>,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let not_found = || {
        ApiError::new(
            ErrorCode::ReconciliationNotFound,
            "Reconciliation not found",
        )
    };
    let id = path_ids::uuid(&id).ok_or_else(not_found)?;
    let one = reconciliations::with_id(&state.store, id)
        .await?
        .ok_or_else(not_found)?;
    let page = query.page(FINDINGS_MAX);
    let findings = reconciliations::findings(&state.store, &one, page).await?;
    let view = ReconciliationWithFindings::new(&one, &findings);
    Ok(ApiResponse::ok(
        "Reconciliation retrieved successfully",
        view,
    ))
}
