//! GET /v1/system-integrators/taxpayers/{id}/integration/setup: the taxpayer, as it is read; no ERP is asked.

use actix_web::web;

use crate::domain::access::caller::IntegratorCaller;
use crate::http::envelope::Answer;
use crate::http::error::ApiError;
use crate::http::ident;
use crate::http::state::State;
use crate::http::views::taxpayer::TaxpayerView;
use crate::store::accounts::taxpayers;

pub(crate) async fn get_integration_setup(
    state: web::Data<State>,
    IntegratorCaller(integrator): IntegratorCaller,
    id: web::Path<String>,
) -> Result<Answer, ApiError> {
    let taxpayer = ident::taxpayer(&state, integrator, &id).await?;
    let contacts = taxpayers::contacts_of(&state.store, taxpayer.id).await?;
    Ok(Answer::ok("Taxpayer retrieved successfully", TaxpayerView::new(&taxpayer, &contacts)))
}
