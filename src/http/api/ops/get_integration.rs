//! GET /ops/taxpayers/{id}/integration: how a taxpayer's ERP takes notifications.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::erp_settings::ErpSettings;
use crate::store::webhooks::integrations;

pub(crate) async fn get_integration(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::any_taxpayer(&state, &id).await?;
    let stored = integrations::owned_by(&state.store, state.store.reader(), taxpayer).await?;
    Ok(ApiResponse::ok("Integration retrieved successfully", ErpSettings::new(taxpayer, stored)))
}
