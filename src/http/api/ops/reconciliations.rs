//! Reconciliations, which compare a taxpayer's invoices of one day with the authority's ledger: start one, list them,
//! show one.

use actix_web::http::StatusCode;
use actix_web::web;
use database::page::Page;

use crate::domain::access::caller::{OpsOperator, OpsViewer};
use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::domain::kernel::fault::Fault;
use crate::domain::reconciliation::day::{OperatorDecision, Reconciliation, RecordedFinding};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::extract::prefer::Prefer;
use crate::http::forms::query::Query;
use crate::http::forms::reconciliation::FindingDecision;
use crate::http::forms::{reader, reconciliation};
use crate::http::openapi::{doc, example};
use crate::http::paths::{Path, path};
use crate::http::respond::code::ErrorCode;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::paginator::Paginator;
use crate::http::views::reconciliation::{ReconciliationView, ReconciliationWithFindings};
use crate::store::operations::finding_decisions::{self, DecisionOutcome};
use crate::store::operations::reconciliations;
use crate::store::operations::reconciliations::ReconciliationFilter;

pub(crate) fn paths() -> Vec<Path> {
    vec![
        path("/ops/reconciliations")
            .post(create_reconciliation, || {
                doc(
                    "create_reconciliation",
                    "Compare a taxpayer's day with the authority's ledger",
                )
                .with_note("Waits for its end as Submit does; `Prefer: respond-async` does not.")
                .with_body(reconciliation::read, example!("create_reconciliation"))
                .with_response::<ReconciliationWithFindings<'_>>(200, "Reconciliation ended")
                .with_response::<ReconciliationWithFindings<'_>>(202, "Reconciliation queued successfully")
                .prefers_async()
                .with_errors(&[ErrorCode::TaxpayerNotFound])
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
                    .with_page_response::<ReconciliationView<'_>>("Reconciliations retrieved successfully")
                    .with_errors(&[ErrorCode::ValidationFailed])
            }),
        path("/ops/reconciliations/{id}/decide").post(decide_findings, || {
            doc("decide_findings", "Decide differences, so that nobody is told of them any more")
                .with_note(
                    "Only findings of the latest comparison of a day can be decided. A later comparison that finds \
                     the same keeps the decision; one that finds other states lists it again. Another reason takes \
                     the place of the one before.",
                )
                .with_body(reconciliation::read_decision, example!("decide_findings"))
                .with_response::<ReconciliationWithFindings<'_>>(200, "Findings decided successfully")
                .with_errors(&[
                    ErrorCode::ReconciliationNotFound,
                    ErrorCode::InvalidTransition,
                ])
        }),
        path("/ops/reconciliations/{id}/reopen").post(reopen_findings, || {
            doc("reopen_findings", "Take a decision back, so that the differences are listed again")
                .with_body(reconciliation::read_decision, example!("decide_findings"))
                .with_response::<ReconciliationWithFindings<'_>>(200, "Findings reopened successfully")
                .with_errors(&[
                    ErrorCode::ReconciliationNotFound,
                    ErrorCode::InvalidTransition,
                ])
        }),
        path("/ops/reconciliations/{id}").get(get_reconciliation, || {
            doc("get_reconciliation", "One of them, with what it found")
                .with_paging("100 at most")
                .with_response::<ReconciliationWithFindings<'_>>(
                    200,
                    "Reconciliation retrieved successfully",
                )
                .with_errors(&[ErrorCode::ReconciliationNotFound])
        }),
    ]
}

/// POST /ops/reconciliations: compares a taxpayer's invoices of one day with the authority's ledger. Returns 202 if the
/// comparison takes longer than the caller waits.
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
    let queued = state
        .reconciliations
        .queue_comparison(form.value.taxpayer_id, form.value.day, Some(by))
        .await?;
    let reconciliation = state
        .reconciliations
        .wait_for_end(&queued, prefer.wait)
        .await?;
    let (status, message) = if reconciliation.state.is_open() {
        (StatusCode::ACCEPTED, "Reconciliation queued successfully")
    } else {
        (StatusCode::OK, "Reconciliation ended")
    };
    let findings = load_first_findings(&state, &reconciliation).await?;
    let path = format!("/ops/reconciliations/{}", reconciliation.id);
    let answer = ApiResponse::with_status(
        status,
        message,
        ReconciliationWithFindings::new(&reconciliation, &findings),
    );
    Ok(answer.with_location(&path).warn(&form.warnings))
}

async fn load_first_findings(
    state: &ApiState,
    reconciliation: &Reconciliation,
) -> Result<Vec<RecordedFinding>, ApiError> {
    let first_page = Page {
        number: 1,
        per_page: FINDINGS_MAX,
    };
    Ok(reconciliations::findings(&state.store, reconciliation, first_page).await?)
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
    let (listed, total) = reconciliations::page(&state.store, filter, page).await?;
    let items = listed.iter().map(ReconciliationView::from).collect();
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
    let reconciliation = find_reconciliation(&state, &id).await?;
    let page = query.page(FINDINGS_MAX);
    let findings = reconciliations::findings(&state.store, &reconciliation, page).await?;
    let view = ReconciliationWithFindings::new(&reconciliation, &findings);
    Ok(ApiResponse::ok(
        "Reconciliation retrieved successfully",
        view,
    ))
}

/// Returns the reconciliation with the id in the path.
pub(crate) async fn find_reconciliation(
    state: &ApiState,
    id: &str,
) -> Result<Reconciliation, ApiError> {
    let stored = match path_ids::parse_uuid(id) {
        Some(id) => reconciliations::find_by_id(&state.store, id).await?,
        None => None,
    };
    stored.ok_or_else(|| {
        ApiError::new(
            ErrorCode::ReconciliationNotFound,
            "Reconciliation not found",
        )
    })
}

/// POST /ops/reconciliations/{id}/decide: an operator marks differences as needing no further action.
async fn decide_findings(
    state: web::Data<ApiState>,
    operator: OpsOperator,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    change_decisions(&state, operator, &id, body, FindingAct::Decide).await
}

/// POST /ops/reconciliations/{id}/reopen: an operator withdraws decisions, so that the differences are listed as open
/// again.
async fn reopen_findings(
    state: web::Data<ApiState>,
    operator: OpsOperator,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    change_decisions(&state, operator, &id, body, FindingAct::Reopen).await
}

async fn change_decisions(
    state: &ApiState,
    OpsOperator(operator_id): OpsOperator,
    id: &str,
    body: Body,
    act: FindingAct,
) -> Result<ApiResponse, ApiError> {
    let reconciliation = find_reconciliation(state, id).await?;
    let form = reader::read(
        &*body.object().await?,
        &state.catalog.get(),
        reconciliation::read_decision,
    )?;
    let changed = act
        .apply_to_findings(state, &reconciliation, operator_id, form.value)
        .await?;
    let reconciliation = find_reconciliation(state, id).await?;
    let findings = load_first_findings(state, &reconciliation).await?;
    let message = match (act, changed) {
        (FindingAct::Decide, 0) => "Nothing was changed: they are decided for this reason already",
        (FindingAct::Reopen, 0) => "Nothing was changed: they are listed already",
        (FindingAct::Decide, _) => "Findings decided successfully",
        (FindingAct::Reopen, _) => "Findings reopened successfully",
    };
    let view = ReconciliationWithFindings::new(&reconciliation, &findings);
    Ok(ApiResponse::ok(message, view).warn(&form.warnings))
}

/// The two things that an operator can do with findings: decide them, or open decided findings again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FindingAct {
    Decide,
    Reopen,
}

impl FindingAct {
    /// Decides or reopens findings. Returns the number of findings that changed. Only findings of the latest finished
    /// comparison of a day can be changed.
    pub(crate) async fn apply_to_findings(
        self,
        state: &ApiState,
        reconciliation: &Reconciliation,
        operator_id: i64,
        decision_form: FindingDecision,
    ) -> Result<usize, ApiError> {
        let now = state.now();
        let by = OperatorRequest {
            operator_id,
            reason: Some(decision_form.reason.clone()),
        };
        let action = match self {
            Self::Decide => AuditAction::DecideFindings,
            Self::Reopen => AuditAction::ReopenFindings,
        };
        let entry = AuditEntry::for_operator_request(&by, action, &reconciliation.id, now)
            .for_taxpayer(reconciliation.taxpayer_id);
        let decision = (self == Self::Decide).then_some(OperatorDecision {
            operator_id,
            reason: decision_form.reason,
            decided_at: now,
        });
        let outcome = finding_decisions::decide(
            &state.store,
            reconciliation,
            &decision_form.findings,
            decision.as_ref(),
            entry,
        );
        match outcome.await? {
            DecisionOutcome::Changed(changed) => Ok(changed),
            DecisionOutcome::NotLatest => Err(ApiError::new(
                ErrorCode::InvalidTransition,
                "This is not the latest finished comparison of the day: decide there",
            )),
            DecisionOutcome::NotListed => Err(Fault::new(
                "findings",
                "listed",
                "The findings field must hold numbers of differences that are listed.",
            )
            .into()),
        }
    }
}
