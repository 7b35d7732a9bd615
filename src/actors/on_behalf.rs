//! Clients of the authority that call on behalf of a taxpayer, so that the calls are counted for the taxpayer and its
//! integrator.

use crate::authority::{Authority, CallerAccount};
use crate::domain::kernel::ids::TaxpayerId;
use crate::store::accounts::taxpayers;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;

/// Returns a client for the calls of this taxpayer.
pub(crate) async fn authority_for_taxpayer(
    authority: &Authority,
    store: &Store,
    taxpayer: TaxpayerId,
) -> Result<Authority, StoreError> {
    let integrator = taxpayers::load_payer(store, taxpayer).await?;
    let integrator = integrator.ok_or_else(|| StoreError::Corrupt {
        table: "taxpayers",
        id: taxpayer.to_string(),
        reason: "it has invoices or runs, but does not exist".to_owned(),
    })?;
    Ok(authority.on_behalf_of(CallerAccount::Taxpayer {
        id: taxpayer,
        integrator,
    }))
}
