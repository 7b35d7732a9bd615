//! GET /v1/tax-payers/invoices/{id}/timeline: everything that happened to an invoice, in order.

use actix_web::web;

use crate::domain::access::caller::TaxpayerCaller;
use crate::domain::invoice::timeline::ENTRIES_MAX;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::timeline::TimelineView;
use crate::store::invoices;
use crate::store::invoices::timeline;

pub(crate) async fn get_timeline(
    state: web::Data<ApiState>,
    TaxpayerCaller(taxpayer): TaxpayerCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let id = path_ids::invoice_id(&id)?;
    let found = invoices::owned_by_with_id(&state.store, taxpayer, id).await?;
    let irn = found.ok_or_else(ApiError::invoice_not_found)?.irn;
    let timeline = timeline::owned_by_with_irn(&state.store, taxpayer, &irn).await?;
    let cut = format!("only the newest {ENTRIES_MAX} entries are shown");
    let warning = timeline.is_cut.then_some(cut);
    let answer = ApiResponse::ok("Timeline retrieved successfully", TimelineView::new(&irn, &timeline));
    Ok(answer.warn(warning.as_slice()))
}
