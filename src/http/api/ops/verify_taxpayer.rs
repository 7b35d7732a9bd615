//! POST /ops/taxpayers/{id}/verify: an operator confirms who a taxpayer is, in the authority's place.

use actix_web::web;

use crate::actors::taxpayer::command::VerificationResult;
use crate::domain::access::caller::OperatorCaller;
use crate::domain::kernel::audit::Actor;
use crate::domain::party::verification::{ConfirmedBy, Verification};
use crate::http::extract::body::Body;
use crate::http::extract::path_ids;
use crate::http::forms::reason;
use crate::http::forms::report;
use crate::http::respond::envelope::ApiResponse;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::views::taxpayer::TaxpayerView;
use crate::store::accounts::taxpayers;

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
