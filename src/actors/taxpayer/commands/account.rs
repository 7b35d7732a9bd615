//! The commands about the taxpayer's account: onboarding, profile, subscription, API key and verification.

use jiff::Timestamp;
use serde_json::json;

use crate::actors::taxpayer::command::{CommandReply, Onboarding, VerificationResult};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::access::api_key::NewKey;
use crate::domain::events::event::EventKind;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::codes::Subscription;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::ids::{CommandId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::verification::{Verification, VerificationPolicy};
use crate::domain::party::{BusinessLocation, ProfileChange, Taxpayer};

impl Onboarding {
    /// Builds the new taxpayer, whose verification is pending.
    pub(crate) fn taxpayer(&self, id: TaxpayerId, now: Timestamp) -> Taxpayer {
        Taxpayer {
            id,
            integrator_id: self.integrator_id,
            name: self.name.clone(),
            email: self.email.clone(),
            tin: self.tin.clone(),
            phone: self.phone.clone(),
            nature_of_business: self.nature_of_business.clone(),
            service_id: self.service_id.clone(),
            business_id: self.business_id.clone(),
            address: self.address.clone(),
            place: BusinessLocation::default(),
            subscription: Subscription::Active,
            verification: Verification::Pending,
            created_at: now,
            updated_at: now,
        }
    }
}

pub(super) fn onboard(
    uow: &mut UnitOfWork,
    cause: CommandId,
    onboarding: &Onboarding,
) -> Result<CommandReply, Refusal> {
    let faults =
        [uow.conflicts(cause), onboarding.conflicts.clone()].into_iter().find(|faults| !faults.is_empty());
    if let Some(faults) = faults {
        return Err(faults.into());
    }
    let taxpayer = onboarding.taxpayer(uow.id, uow.now);
    uow.writes.new_contact = Some(onboarding.contact.clone());
    let by = Actor::Integrator(taxpayer.integrator_id);
    uow.writes.audit.push(audit_entry(uow, by, AuditAction::CreateTaxpayer));
    uow.put_taxpayer(taxpayer.clone());
    Ok(CommandReply::Taxpayer(Box::new(taxpayer)))
}

pub(super) fn change_profile(
    uow: &mut UnitOfWork,
    cause: CommandId,
    change: &ProfileChange,
    by: Actor,
) -> Result<CommandReply, Refusal> {
    let mut taxpayer = uow.taxpayer()?.clone();
    let faults: Faults =
        uow.conflicts(cause).iter().filter(|fault| fault.path == "email").map(as_business_email).collect();
    if !faults.is_empty() {
        return Err(faults.into());
    }
    let before = taxpayer.clone();
    change.clone().apply(&mut taxpayer);
    let changed = taxpayer.changed_since(&before);
    if !changed.is_empty() {
        let entry = audit_entry(uow, by, AuditAction::UpdateProfile).between(None, Some(changed.join(", ")));
        uow.writes.audit.push(entry);
    }
    taxpayer.updated_at = uow.now;
    uow.put_taxpayer(taxpayer.clone());
    Ok(CommandReply::Taxpayer(Box::new(taxpayer)))
}

/// Renames the fault: in a profile, the taxpayer's email is the field `business_email`.
fn as_business_email(fault: &Fault) -> Fault {
    Fault::new("business_email", fault.rule(), "The business_email has already been taken.")
}

pub(super) fn set_subscription(
    uow: &mut UnitOfWork,
    subscription: Subscription,
    by: Actor,
) -> Result<CommandReply, Refusal> {
    let mut taxpayer = uow.taxpayer()?.clone();
    let before = std::mem::replace(&mut taxpayer.subscription, subscription);
    let entry = audit_entry(uow, by, AuditAction::SetSubscription);
    let entry = entry.between(Some(before.to_string()), Some(subscription.to_string()));
    uow.writes.audit.push(entry);
    taxpayer.updated_at = uow.now;
    uow.put_taxpayer(taxpayer.clone());
    Ok(CommandReply::Taxpayer(Box::new(taxpayer)))
}

pub(super) fn rotate_key(
    uow: &mut UnitOfWork,
    cause: CommandId,
    key: &NewKey,
    by: Actor,
) -> Result<CommandReply, Refusal> {
    uow.taxpayer()?;
    uow.writes.keys.push(key.clone());
    let entry = audit_entry(uow, by, AuditAction::RotateTaxpayerKey).between(None, key.terms.noted());
    uow.writes.audit.push(entry);
    uow.emit(cause, EventKind::ApiKeyRotated, None, &json!({ "taxpayer_id": uow.id }));
    Ok(CommandReply::Done)
}

/// Revokes one API key. Nothing happens if the taxpayer no longer has it.
pub(super) fn revoke_key(uow: &mut UnitOfWork, id: &str, by: Actor) -> Result<CommandReply, Refusal> {
    uow.taxpayer()?;
    uow.writes.revoked_keys.push(id.to_owned());
    let entry = audit_entry(uow, by, AuditAction::RevokeTaxpayerKey);
    uow.writes.audit.push(entry.between(None, Some(format!("key {id}"))));
    Ok(CommandReply::Done)
}

/// Returns an entry of the audit trail about this taxpayer. The integrator may read what the taxpayer's people change.
pub(super) fn audit_entry(uow: &UnitOfWork, by: Actor, action: AuditAction) -> AuditEntry {
    let entry = AuditEntry::new(by, action, &uow.id, uow.now).of_taxpayer(uow.id);
    match (by, &uow.cached.taxpayer) {
        (Actor::Contact(_) | Actor::TaxpayerKey(_), Some(taxpayer)) => {
            entry.of_integrator(taxpayer.integrator_id)
        }
        _ => entry,
    }
}

/// Records the result of a verification. Once the taxpayer is verified, no later result changes that.
pub(super) fn record_verification(
    uow: &mut UnitOfWork,
    cause: CommandId,
    result: &VerificationResult,
) -> Result<CommandReply, Refusal> {
    let mut taxpayer = uow.taxpayer()?.clone();
    let before = taxpayer.verification;
    if let Some(after) = before.after(result.found) {
        taxpayer.verification = after;
        uow.put_taxpayer(taxpayer.clone());
        if let Some(kind) = verification_event(before, after, uow.verification) {
            let status = after.status();
            let data = json!({ "taxpayer_id": uow.id, "verification": status, "reason": after.reason() });
            uow.emit(cause, kind, None, &data);
        }
    }
    if let Some(by) = result.by {
        let [from, to] = [before, taxpayer.verification].map(|one| Some(one.status().to_string()));
        let entry = AuditEntry::new(by, AuditAction::VerifyTaxpayer, &uow.id, uow.now);
        let entry = entry.of_taxpayer(uow.id).of_integrator(taxpayer.integrator_id).between(from, to);
        uow.writes.audit.push(AuditEntry { reason: result.reason.clone(), ..entry });
    }
    Ok(CommandReply::Taxpayer(Box::new(taxpayer)))
}

/// Returns the event for a changed verification. A pending taxpayer that the policy already lets work gets no event
/// when it is verified, because nothing changes for it.
fn verification_event(
    before: Verification,
    after: Verification,
    policy: VerificationPolicy,
) -> Option<EventKind> {
    if !after.is_verified() {
        return Some(EventKind::TaxpayerUnverified);
    }
    let was_awaited = before != Verification::Pending || !before.satisfies(policy);
    was_awaited.then_some(EventKind::TaxpayerVerified)
}
