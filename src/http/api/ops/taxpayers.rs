//! Taxpayers of all integrators: list, verification by an operator, and the ERP integration.

use actix_web::web;

use crate::actors::taxpayer::command::{IntegrationChange, VerificationResult};
use crate::domain::access::caller::OperatorCaller;
use crate::domain::kernel::audit::{Actor, OperatorRequest};
use crate::domain::party::verification::{ConfirmedBy, Verification, VerificationStatus};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::query::Query;
use crate::http::forms::reader::Reader;
use crate::http::forms::{integration, reason, report};
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::erp_settings::ErpSettings;
use crate::http::views::paginator::Paginator;
use crate::http::views::taxpayer::{OperatedTaxpayer, TaxpayerView};
use crate::store::accounts::taxpayers;
use crate::store::accounts::taxpayers::TaxpayerFilter;
use crate::store::webhooks::integrations;

// GET /ops/taxpayers: lists the taxpayers of all integrators, newest first. Operators use it to find those that need
// their action.

const PER_PAGE_DEFAULT: u64 = 15;

pub(crate) async fn list_all_taxpayers(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    query: Query,
) -> Result<ApiResponse, ApiError> {
    let verification = query.word("verification", VerificationStatus::parse, VerificationStatus::allowed)?;
    let (filter, page) =
        (TaxpayerFilter { verification, tin: query.equal("tin") }, query.page(PER_PAGE_DEFAULT));
    let (found, total) = taxpayers::page(&state.store, filter, page).await?;
    let items = found.iter().map(OperatedTaxpayer::new).collect();
    Ok(ApiResponse::ok("Taxpayers retrieved successfully", Paginator::new(page, total, items)))
}

/// POST /ops/taxpayers/{id}/verify: records that an operator confirms a taxpayer's identity, in place of the
/// authority.
pub(crate) async fn verify_taxpayer(
    state: web::Data<ApiState>,
    OperatorCaller(operator_id): OperatorCaller,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let form = report::read(&*body.object().await?, &state.catalog.get(), reason::read_required)?;
    let id = path_ids::any_taxpayer(&state, &id).await?;
    let found = Verification::Verified(ConfirmedBy::Operator);
    let found =
        VerificationResult { found, by: Some(Actor::Operator(operator_id)), reason: Some(form.value) };
    let taxpayer = state.taxpayers.record_verification(id, found).await?;
    let contacts = taxpayers::contacts_of(&state.store, id).await?;
    let view = TaxpayerView::new(&taxpayer, &contacts);
    Ok(ApiResponse::ok("Taxpayer verified successfully", view).warn(&form.warnings))
}

/// GET /ops/taxpayers/{id}/integration: returns the ERP notification settings of a taxpayer.
pub(crate) async fn get_integration(
    state: web::Data<ApiState>,
    _: OperatorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::any_taxpayer(&state, &id).await?;
    let stored = integrations::owned_by(&state.store, state.store.reader(), taxpayer).await?;
    Ok(ApiResponse::ok("Integration retrieved successfully", ErpSettings::new(taxpayer, stored)))
}

/// PUT /ops/taxpayers/{id}/integration: sets the ERP notification settings of a taxpayer.
pub(crate) async fn set_integration(
    state: web::Data<ApiState>,
    OperatorCaller(operator_id): OperatorCaller,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::any_taxpayer(&state, &id).await?;
    let read =
        |reader: &mut Reader<'_>| integration::read(reader, &state.webhook_urls, &state.settings.erp_systems);
    let form = report::read(&*body.object().await?, &state.catalog.get(), read)?;
    let integration::Integration { erp_system, auth, origin, format, allowed_networks, reason } = form.value;
    let by = OperatorRequest { operator_id, reason };
    let order = IntegrationChange { erp_system, auth, origin, format, allowed_networks, by };
    let stored = state.taxpayers.set_integration(taxpayer, order).await?;
    let view = ErpSettings::new(taxpayer, Some(stored));
    Ok(ApiResponse::ok("Integration updated successfully", view).warn(&form.warnings))
}
