//! GET /v1/system-integrators/taxpayers/{id}.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::http::extract::path_ids;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::taxpayer::TaxpayerView;
use crate::store::accounts::taxpayers;

pub(crate) async fn get_taxpayer(
    state: web::Data<ApiState>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<ApiResponse, ApiError> {
    let taxpayer = path_ids::taxpayer(&state, integrator, &id).await?;
    let contacts = taxpayers::contacts_of(&state.store, taxpayer.id).await?;
    Ok(ApiResponse::ok("Taxpayer retrieved successfully", TaxpayerView::new(&taxpayer, &contacts)))
}
