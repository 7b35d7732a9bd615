//! Contact data in documents is hidden from operators. An operator who needs it gives a reason, which the audit
//! keeps.

use crate::console::operators::reason::ReasonForm;
use crate::console::session::operators::OperatorSession;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::ids::TaxpayerId;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::store::operations::audit;

/// Records in the audit that an operator sees the contact data in the document of this IRN. Call this before the
/// document is shown, so that nobody sees it without a record.
pub(super) async fn record_contact_data_view(
    state: &ApiState,
    session: &OperatorSession,
    taxpayer: TaxpayerId,
    irn: &Irn,
    reason: String,
) -> Result<(), ApiError> {
    let reason = Some(ReasonForm { reason }.read_required(state)?);
    let entry = AuditEntry::new(
        Actor::Operator(session.id),
        AuditAction::ShowContactData,
        irn,
        state.now(),
    );
    let entry = AuditEntry {
        reason,
        ..entry.for_taxpayer(taxpayer)
    };
    Ok(audit::record(&state.store, &[entry]).await?)
}
