//! An operator's order to pause a taxpayer or to resume it. It is stored, so that every replica obeys it, also after a
//! restart.

use database::StoreError;

use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::taxpayer_pause::TaxpayerPause;
use crate::http::state::ApiState;
use crate::store::operations::taxpayer_pauses;

/// Pauses a taxpayer. This replica obeys at once, the others within a second. Returns false if that changes nothing.
pub(crate) async fn pause(
    state: &ApiState,
    taxpayer: TaxpayerId,
    by: &OperatorRequest,
) -> Result<bool, StoreError> {
    let pause = TaxpayerPause {
        taxpayer_id: taxpayer,
        since: state.now(),
        reason: by.reason.clone(),
    };
    let entry = entry(state, taxpayer, by, AuditAction::PauseTaxpayer);
    let is_change = taxpayer_pauses::pause(&state.store, pause, entry).await?;
    read(state).await.map(|()| is_change)
}

/// Ends the pause of a taxpayer. This replica obeys at once, the others within a second. Returns false if the taxpayer
/// was not paused.
pub(crate) async fn resume(
    state: &ApiState,
    taxpayer: TaxpayerId,
    by: &OperatorRequest,
) -> Result<bool, StoreError> {
    let entry = entry(state, taxpayer, by, AuditAction::ResumeTaxpayer);
    let is_change = taxpayer_pauses::resume(&state.store, taxpayer, entry).await?;
    read(state).await.map(|()| is_change)
}

fn entry(
    state: &ApiState,
    taxpayer: TaxpayerId,
    by: &OperatorRequest,
    action: AuditAction,
) -> AuditEntry {
    AuditEntry::for_operator_request(by, action, &taxpayer, state.now()).for_taxpayer(taxpayer)
}

/// Reads which taxpayers are paused, and obeys from now on.
pub(super) async fn read(state: &ApiState) -> Result<(), StoreError> {
    let pauses = taxpayer_pauses::list(&state.store).await?;
    state.taxpayers.paused_taxpayers().set(pauses);
    Ok(())
}
