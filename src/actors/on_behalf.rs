//! Clients of the authority that call on behalf of a taxpayer, so that the calls are counted for the taxpayer and its
//! integrator.

use authority_client::{Authority, CallerAccount};
use database::StoreError;

use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::domain::party::Taxpayer;
use crate::store::Store;
use crate::store::accounts::taxpayers;

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
    Ok(authority.for_account(taxpayer_account(taxpayer, integrator)))
}

impl From<&Taxpayer> for CallerAccount {
    fn from(taxpayer: &Taxpayer) -> Self {
        taxpayer_account(taxpayer.id, taxpayer.integrator_id)
    }
}

fn taxpayer_account(taxpayer: TaxpayerId, integrator: IntegratorId) -> CallerAccount {
    CallerAccount::Taxpayer {
        id: taxpayer.0,
        payer: integrator.0,
    }
}
