//! The commands about the taxpayer's account: onboarding, profile, subscription and verification.

use jiff::Timestamp;
use serde_json::json;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::write_set::FirstContact;
use crate::domain::events::event::EventKind;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::codes::Subscription;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::ids::{EndpointKey, IntegratorId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::settings::{AccountSettings, SettingChange};
use crate::domain::party::verification::{Verification, VerificationPolicy};
use crate::domain::party::{BusinessLocation, NewContact, ProfileChange, Taxpayer};
use crate::store::ids::IdKind;

/// Adds a taxpayer under a reserved id.
#[derive(Debug, Clone)]
pub struct Onboard {
    pub integrator_id: IntegratorId,
    pub name: String,
    pub email: String,
    pub tin: String,
    pub phone: Option<String>,
    pub nature_of_business: Option<String>,
    pub service_id: String,
    pub business_id: String,
    pub address: String,
    /// The location, as far as the sender knows it.
    pub place: BusinessLocation,
    pub contact: NewContact,
    /// The faults that the sender has found: one for each value that another taxpayer already has. If there is one, the
    /// command is refused, so the sender has skipped the slow hashing of the password.
    pub conflicts: Faults,
}

pub struct ChangeProfile {
    pub change: ProfileChange,
    pub by: Actor,
}

pub struct SetSubscription {
    pub to: Subscription,
    pub by: Actor,
}

/// Records the result of a verification, by the authority or by an operator. Once the taxpayer is verified, no later
/// result changes that.
#[derive(Debug, Clone)]
pub struct RecordVerification {
    pub found: Verification,
    /// The operator who decided. `None` if the result comes from the authority.
    pub by: Option<Actor>,
    pub reason: Option<String>,
}

impl Onboard {
    /// Builds the new taxpayer, whose verification is pending.
    pub(crate) fn new_taxpayer(&self, id: TaxpayerId, now: Timestamp) -> Taxpayer {
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
            place: self.place.clone(),
            settings: AccountSettings::default(),
            subscription: Subscription::Active,
            verification: Verification::Pending,
            created_at: now,
            updated_at: now,
        }
    }
}

impl TaxpayerCommand for Onboard {
    type Output = Taxpayer;

    const NAME: &'static str = "onboard";
    const SETS_UNIQUE_VALUES: bool = true;

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        wanted.add(IdKind::Contact, 1);
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        let taxpayer = self.new_taxpayer(context.taxpayer_id, Timestamp::UNIX_EPOCH);
        wanted.add_uniqueness_check(context.command, taxpayer, Some(&self.contact.email));
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Taxpayer, Refusal> {
        let faults = [uow.unique_value_faults(), self.conflicts.clone()]
            .into_iter()
            .find(|faults| !faults.is_empty());
        if let Some(faults) = faults {
            return Err(faults.into());
        }
        let taxpayer = self.new_taxpayer(uow.id, uow.now);
        let contact = FirstContact {
            id: uow.ids.next(IdKind::Contact),
            person: self.contact.clone(),
        };
        uow.writes.first_contact = Some(contact);
        let by = Actor::Integrator(taxpayer.integrator_id);
        let entry = audit_entry(uow, by, AuditAction::CreateTaxpayer);
        uow.writes.audit.push(entry);
        *uow.taxpayer = Some(taxpayer.clone());
        Ok(taxpayer)
    }
}

impl TaxpayerCommand for ChangeProfile {
    type Output = Taxpayer;

    const NAME: &'static str = "change-profile";
    const SETS_UNIQUE_VALUES: bool = true;

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        let taxpayer = context.cached.taxpayer.clone();
        if let Some(mut changed) = taxpayer.filter(|_| self.change.email.is_some()) {
            self.change.clone().apply(&mut changed);
            wanted.add_uniqueness_check(context.command, changed, None);
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Taxpayer, Refusal> {
        let before = uow.taxpayer()?.clone();
        let conflicts = uow.unique_value_faults();
        let faults: Faults = conflicts
            .iter()
            .filter(|fault| fault.path == "email")
            .map(to_business_email_fault)
            .collect();
        if !faults.is_empty() {
            return Err(faults.into());
        }
        let mut taxpayer = before.clone();
        self.change.clone().apply(&mut taxpayer);
        let logo = &self.change.settings.logo;
        if *logo != SettingChange::Keep {
            uow.writes.logo = logo.clone();
        }
        let changed = taxpayer.changed_fields_since(&before);
        if !changed.is_empty() {
            let entry = audit_entry(uow, self.by, AuditAction::UpdateProfile);
            uow.writes
                .audit
                .push(entry.with_states(None, Some(changed.join(", "))));
        }
        taxpayer.updated_at = uow.now;
        *uow.taxpayer = Some(taxpayer.clone());
        Ok(taxpayer)
    }
}

/// Renames the fault: in a profile, the taxpayer's email is the field `business_email`.
fn to_business_email_fault(fault: &Fault) -> Fault {
    Fault::new(
        "business_email",
        fault.rule(),
        "The business_email has already been taken.",
    )
}

impl TaxpayerCommand for SetSubscription {
    type Output = Taxpayer;

    const NAME: &'static str = "set-subscription";

    fn default_audit_actor(&self) -> Actor {
        self.by
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Taxpayer, Refusal> {
        let mut taxpayer = uow.taxpayer()?.clone();
        let before = std::mem::replace(&mut taxpayer.subscription, self.to);
        if before == self.to {
            return Ok(taxpayer);
        }
        let entry = audit_entry(uow, self.by, AuditAction::SetSubscription);
        let entry = entry.with_states(Some(before.to_string()), Some(self.to.to_string()));
        uow.writes.audit.push(entry);
        taxpayer.updated_at = uow.now;
        *uow.taxpayer = Some(taxpayer.clone());
        Ok(taxpayer)
    }
}

impl TaxpayerCommand for RecordVerification {
    type Output = Taxpayer;

    const NAME: &'static str = "record-verification";

    fn default_audit_actor(&self) -> Actor {
        self.by.unwrap_or(Actor::Authority)
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Taxpayer, Refusal> {
        let mut taxpayer = uow.taxpayer()?.clone();
        let before = taxpayer.verification;
        if let Some(after) = before.after_check(self.found) {
            taxpayer.verification = after;
            taxpayer.updated_at = uow.now;
            *uow.taxpayer = Some(taxpayer.clone());
            if let Some(kind) = verification_event(before, after, uow.verification) {
                let status = after.status();
                let data = json!({ "taxpayer_id": uow.id, "verification": status, "reason": after.reason() });
                uow.emit(kind, None, &data);
            }
        }
        if let Some(by) = self.by {
            let [from, to] =
                [before, taxpayer.verification].map(|one| Some(one.status().to_string()));
            let entry = AuditEntry::new(by, AuditAction::VerifyTaxpayer, &uow.id, uow.now);
            let entry = entry
                .for_taxpayer(uow.id)
                .for_integrator(taxpayer.integrator_id)
                .with_states(from, to);
            uow.writes.audit.push(AuditEntry {
                reason: self.reason.clone(),
                ..entry
            });
        }
        Ok(taxpayer)
    }
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

/// Returns an entry of the audit trail about an endpoint of this taxpayer.
pub(super) fn endpoint_audit_entry(
    uow: &UnitOfWork,
    by: Actor,
    action: AuditAction,
    endpoint: EndpointKey,
) -> AuditEntry {
    AuditEntry {
        subject: endpoint.name(),
        ..audit_entry(uow, by, action)
    }
}

/// Returns an entry of the audit trail about this taxpayer. The integrator may read the entries of changes that the
/// taxpayer's own contacts and keys make.
pub(super) fn audit_entry(uow: &UnitOfWork, by: Actor, action: AuditAction) -> AuditEntry {
    let entry = AuditEntry::new(by, action, &uow.id, uow.now).for_taxpayer(uow.id);
    match (by, &*uow.taxpayer) {
        (Actor::Contact(_) | Actor::TaxpayerKey(_), Some(taxpayer)) => {
            entry.for_integrator(taxpayer.integrator_id)
        }
        _ => entry,
    }
}
