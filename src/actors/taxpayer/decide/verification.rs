//! Who a taxpayer is, as the authority or an operator says. A confirmation stays; a doubt goes with it.

use serde_json::json;

use crate::actors::taxpayer::command::{FoundOut, Reply};
use crate::actors::taxpayer::desk::Desk;
use crate::domain::events::event::EventKind;
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::verification::{Verification, VerificationPolicy};

pub(super) fn record(desk: &mut Desk, cause: CommandId, what: &FoundOut) -> Result<Reply, Refusal> {
    let mut taxpayer = desk.taxpayer()?.clone();
    let before = taxpayer.verification;
    if let Some(after) = before.after(what.found) {
        taxpayer.verification = after;
        desk.put_taxpayer(taxpayer.clone());
        if let Some(kind) = event(before, after, desk.verification) {
            let status = after.status();
            let data = json!({ "taxpayer_id": desk.id, "verification": status, "reason": after.reason() });
            desk.emit(cause, kind, None, data);
        }
    }
    if let Some(by) = what.by {
        let [from, to] = [before, taxpayer.verification].map(|one| Some(one.status().to_string()));
        let entry = AuditEntry::new(by, AuditAction::VerifyTaxpayer, &desk.id, desk.now);
        let entry = entry.of_taxpayer(desk.id).of_integrator(taxpayer.integrator_id).between(from, to);
        desk.changes.audit.push(AuditEntry { reason: what.reason.clone(), ..entry });
    }
    Ok(Reply::Taxpayer(Box::new(taxpayer)))
}

/// A confirmation is news only to who was told of a doubt or could do nothing without it.
fn event(before: Verification, after: Verification, policy: VerificationPolicy) -> Option<EventKind> {
    if !after.is_verified() {
        return Some(EventKind::TaxpayerUnverified);
    }
    let was_awaited = before != Verification::Pending || !before.satisfies(policy);
    was_awaited.then_some(EventKind::TaxpayerVerified)
}
