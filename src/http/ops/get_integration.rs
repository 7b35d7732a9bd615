//! GET /ops/taxpayers/{id}/integration: how a taxpayer's ERP takes notifications.

use actix_web::web;

use crate::domain::access::caller::OperatorCaller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::erp_settings::ErpSettings;
use crate::store::webhooks::integrations;

pub(crate) async fn get_integration(
    state: web::Data<State>,
    _: OperatorCaller,
    id: web::Path<String>,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::any_taxpayer(&state, &id).await?;
    let stored = integrations::owned_by(&state.store, state.store.reader(), taxpayer).await?;
    Ok(Answer::ok("Integration retrieved successfully", ErpSettings::new(taxpayer, stored)))
}
