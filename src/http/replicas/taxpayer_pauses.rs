//! Operators' orders to pause and to resume taxpayers. They are stored, so that every replica obeys them, also after a
//! restart.

use database::StoreError;

use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::taxpayer_pause::TaxpayerPause;
use crate::http::state::ApiState;
use crate::store::operations::taxpayer_pauses;

/// Pauses a taxpayer. This replica obeys at once, the others within a second. Returns false if the taxpayer was already
/// paused.
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
    let entry = audit_entry(state, taxpayer, by, AuditAction::PauseTaxpayer);
    let is_change = taxpayer_pauses::pause(&state.store, pause, entry).await?;
    load_pauses(state).await.map(|()| is_change)
}

/// Ends the pause of a taxpayer. This replica obeys at once, the others within a second. Returns false if the taxpayer
/// was not paused.
pub(crate) async fn resume(
    state: &ApiState,
    taxpayer: TaxpayerId,
    by: &OperatorRequest,
) -> Result<bool, StoreError> {
    let entry = audit_entry(state, taxpayer, by, AuditAction::ResumeTaxpayer);
    let is_change = taxpayer_pauses::resume(&state.store, taxpayer, entry).await?;
    load_pauses(state).await.map(|()| is_change)
}

fn audit_entry(
    state: &ApiState,
    taxpayer: TaxpayerId,
    by: &OperatorRequest,
    action: AuditAction,
) -> AuditEntry {
    AuditEntry::for_operator_request(by, action, &taxpayer, state.now()).for_taxpayer(taxpayer)
}

/// Reads from the database which taxpayers are paused. From then on, this replica accepts no writes of these taxpayers
/// and starts none of their runs.
pub(super) async fn load_pauses(state: &ApiState) -> Result<(), StoreError> {
    let _turn = state.replicas.wait_for_order_turn().await;
    let pauses = taxpayer_pauses::list(&state.store).await?;
    state.taxpayers.paused_taxpayers().set(pauses);
    Ok(())
}
