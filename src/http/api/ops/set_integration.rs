//! PUT /ops/taxpayers/{id}/integration: sets how a taxpayer's ERP takes notifications.

use actix_web::web;

use crate::actors::taxpayer::command::IntegrationChange;
use crate::domain::access::caller::OperatorCaller;
use crate::domain::kernel::audit::OperatorRequest;
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::integration;
use crate::http::forms::reader::Reader;
use crate::http::forms::report;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::erp_settings::ErpSettings;

pub(crate) async fn set_integration(
    state: web::Data<ApiState>,
    OperatorCaller(operator_id): OperatorCaller,
    id: web::Path<String>,
    body: Body,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::any_taxpayer(&state, &id).await?;
    let allowed = (&state.webhook_urls, state.settings.erp_systems.as_slice());
    let read = |reader: &mut Reader<'_>| integration::read(reader, allowed);
    let form = report::read(&*body.object().await?, &state.catalog.get(), read)?;
    let integration::Integration { erp_system, auth, origin, format, allowed_networks, reason } = form.value;
    let by = OperatorRequest { operator_id, reason };
    let order = IntegrationChange { erp_system, auth, origin, format, allowed_networks, by };
    let stored = state.taxpayers.set_integration(taxpayer, order).await?;
    let view = ErpSettings::new(taxpayer, Some(stored));
    Ok(ApiResponse::ok("Integration updated successfully", view).warn(&form.warnings))
}
