//! POST /ops/reconciliations: has a taxpayer's day compared with the authority's ledger. What is asked for is
//! kept and done; whoever prefers not to wait for its end, or has waited long enough, is told where it stands.

use actix_web::http::StatusCode;
use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::domain::kernel::audit::OperatorRequest;
use crate::http::api::ops::get_reconciliation::FINDINGS_MAX;
use crate::http::extract::body::Body;
use crate::http::extract::prefer::Prefer;
use crate::http::forms::reconciliation;
use crate::http::forms::report;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::reconciliation::ReconciliationWithFindings;
use crate::store::db::page::Page;
use crate::store::operations::reconciliations;

pub(crate) async fn create_reconciliation(
    state: web::Data<ApiState>,
    OperatorCaller(operator_id): OperatorCaller,
    prefer: Prefer,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), reconciliation::read)?;
    let by = OperatorRequest { operator_id, reason: form.value.reason };
    let asked = state.reconciliations.ask(form.value.taxpayer_id, form.value.day, Some(by)).await?;
    let one = state.reconciliations.wait(&asked, prefer.wait).await?;
    let (status, said) = if one.state.is_open() {
        (StatusCode::ACCEPTED, "Reconciliation queued successfully")
    } else {
        (StatusCode::OK, "Reconciliation ended")
    };
    let findings =
        reconciliations::findings(&state.store, &one, Page { number: 1, per_page: FINDINGS_MAX }).await?;
    let path = format!("/ops/reconciliations/{}", one.id);
    let answer = ApiResponse::with_status(status, said, ReconciliationWithFindings::new(&one, &findings));
    Ok(answer.located(&path).warn(&form.warnings))
}
