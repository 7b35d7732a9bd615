//! What stands before a create: an active subscription and a complete profile. The taxpayer's actor
//! asks for both; here they only go before the faults of a form, without a query where there are none.

use crate::domain::fault::Faults;
use crate::domain::ids::TaxpayerId;
use crate::http::error::ApiError;
use crate::http::state::State;
use crate::store::taxpayers;

/// The failure of a create whose form has faults.
pub(crate) async fn or_faults(state: &State, id: TaxpayerId, faults: Faults) -> ApiError {
    match taxpayers::with_id(state.store.reader(), id).await {
        Ok(Some(taxpayer)) => taxpayer.may_create_invoices().map_or_else(ApiError::from, |()| faults.into()),
        Ok(None) => ApiError::taxpayer_not_found(),
        Err(error) => error.into(),
    }
}
