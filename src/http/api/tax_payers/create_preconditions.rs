//! What stands before a create: an active subscription, a complete profile, and a confirmed taxpayer where that is
//! required. The taxpayer's actor
//! asks for both; here they only go before the faults of a form, without a query where there are none.

use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::party::Taxpayer;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::accounts::taxpayers;

/// The failure of a create whose form has faults.
pub(crate) async fn or_faults(state: &ApiState, id: TaxpayerId, faults: Faults) -> ApiError {
    passed(state, id).await.map_or_else(|refused| refused, |_| faults.into())
}

/// The taxpayer, if it may create invoices.
pub(crate) async fn passed(state: &ApiState, id: TaxpayerId) -> Result<Taxpayer, ApiError> {
    let taxpayer = taxpayers::with_id(state.store.reader(), id).await?;
    let taxpayer = taxpayer.ok_or_else(ApiError::taxpayer_not_found)?;
    taxpayer.may_create_invoices(state.settings.verification)?;
    Ok(taxpayer)
}
