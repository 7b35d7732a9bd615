//! The taxpayer's own record: onboarding, profile, subscription, key and webhook.

use serde_json::json;

use jiff::Timestamp;

use crate::actors::taxpayer::command::{Onboarding, Reply, WebhookChange};
use crate::actors::taxpayer::desk::Desk;
use crate::domain::access::api_key::NewKey;
use crate::domain::events::delivery::Endpoint;
use crate::domain::events::event::EventKind;
use crate::domain::integration::origin::Origin;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::clock;
use crate::domain::kernel::codes::Subscription;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::kernel::ids::{CommandId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::party::verification::Verification;
use crate::domain::party::{BusinessLocation, ProfileChange, Taxpayer};
use crate::webhook::Secret;

impl Onboarding {
    /// The taxpayer that this onboarding makes.
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

pub(super) fn onboard(desk: &mut Desk, cause: CommandId, onboarding: &Onboarding) -> Result<Reply, Refusal> {
    let faults = [desk.taken(cause), onboarding.taken.clone()].into_iter().find(|faults| !faults.is_empty());
    if let Some(faults) = faults {
        return Err(faults.into());
    }
    let taxpayer = onboarding.taxpayer(desk.id, desk.now);
    desk.changes.new_contact = Some(onboarding.contact.clone());
    audit(desk, Actor::Integrator(taxpayer.integrator_id), AuditAction::CreateTaxpayer, (None, None));
    desk.put_taxpayer(taxpayer.clone());
    Ok(Reply::Taxpayer(Box::new(taxpayer)))
}

pub(super) fn change_profile(
    desk: &mut Desk,
    cause: CommandId,
    change: &ProfileChange,
    by: Actor,
) -> Result<Reply, Refusal> {
    let mut taxpayer = desk.taxpayer()?.clone();
    let faults: Faults =
        desk.taken(cause).iter().filter(|fault| fault.path == "email").map(as_business_email).collect();
    if !faults.is_empty() {
        return Err(faults.into());
    }
    let before = taxpayer.clone();
    change.clone().apply(&mut taxpayer);
    let changed = taxpayer.changed_since(&before);
    if !changed.is_empty() {
        audit(desk, by, AuditAction::UpdateProfile, (None, Some(changed.join(", "))));
    }
    taxpayer.updated_at = desk.now;
    desk.put_taxpayer(taxpayer.clone());
    Ok(Reply::Taxpayer(Box::new(taxpayer)))
}

/// A profile names the taxpayer's email by what it is there.
fn as_business_email(fault: &Fault) -> Fault {
    Fault::new("business_email", fault.rule, "The business_email has already been taken.")
}

pub(super) fn set_subscription(
    desk: &mut Desk,
    subscription: Subscription,
    by: Actor,
) -> Result<Reply, Refusal> {
    let mut taxpayer = desk.taxpayer()?.clone();
    let before = std::mem::replace(&mut taxpayer.subscription, subscription);
    let states = (Some(before.to_string()), Some(subscription.to_string()));
    audit(desk, by, AuditAction::SetSubscription, states);
    taxpayer.updated_at = desk.now;
    desk.put_taxpayer(taxpayer.clone());
    Ok(Reply::Taxpayer(Box::new(taxpayer)))
}

pub(super) fn rotate_key(
    desk: &mut Desk,
    cause: CommandId,
    key: &NewKey,
    by: Actor,
) -> Result<Reply, Refusal> {
    desk.taxpayer()?;
    desk.changes.keys.push(key.clone());
    audit(desk, by, AuditAction::RotateTaxpayerKey, (None, key.terms.noted()));
    desk.emit(cause, EventKind::ApiKeyRotated, None, json!({ "taxpayer_id": desk.id }));
    Ok(Reply::Done)
}

/// The first call makes the record and activates it; later ones change URL, events and schedule. A disabled endpoint is
/// back in service with it: whoever says where notifications go wants them there.
pub(super) fn set_webhook(
    desk: &mut Desk,
    cause: CommandId,
    change: &WebhookChange,
) -> Result<Reply, Refusal> {
    desk.taxpayer()?;
    let now = desk.now;
    let before = desk.books.endpoint.clone();
    let endpoint = before.clone().unwrap_or_else(|| Endpoint {
        id: desk.ids.webhook,
        taxpayer_id: desk.id,
        url: change.url.clone(),
        enabled_events: Vec::new(),
        is_active: true,
        disabled_reason: None,
        disabled_after: None,
        public_key: None,
        retry_schedule: None,
        created_at: now,
        updated_at: now,
    });
    let mut endpoint = endpoint.enabled(now);
    change.url.clone_into(&mut endpoint.url);
    if let Some(events) = &change.enabled_events {
        endpoint.enabled_events.clone_from(events);
    }
    endpoint.retry_schedule = change.retry_schedule.clone().applied(endpoint.retry_schedule);
    put_endpoint(desk, endpoint.clone());
    let changed = endpoint.changed_since(before.as_ref());
    if !changed.is_empty() {
        let origin = |endpoint: &Endpoint| Origin::of(&endpoint.url).map(|origin| origin.to_string());
        let to = format!("{} ({})", origin(&endpoint).unwrap_or_default(), changed.join(", "));
        let states = (before.as_ref().and_then(origin), Some(to));
        audit(desk, change.by, AuditAction::UpdateWebhook, states);
        announce(desk, cause, &changed);
    }
    Ok(Reply::Endpoint(Box::new(endpoint)))
}

pub(super) fn rotate_secret(
    desk: &mut Desk,
    cause: CommandId,
    secret: &Secret,
    by: Actor,
) -> Result<Reply, Refusal> {
    desk.taxpayer()?;
    let endpoint = desk.books.endpoint.as_mut().ok_or(Refusal::WebhookNotConfigured)?;
    endpoint.public_key = secret.public_key();
    desk.changes.secrets.push(secret.clone());
    audit(desk, by, AuditAction::RotateWebhookSecret, (None, None));
    announce(desk, cause, &["secret"]);
    Ok(Reply::Done)
}

/// Appends the event of a changed webhook: the ids, the origin of its URL and the names of what changed. The path of
/// the URL may hold a secret of the receiver.
pub(super) fn announce(desk: &mut Desk, cause: CommandId, changed: &[&str]) {
    let endpoint = desk.books.endpoint.as_ref();
    let data = json!({
        "taxpayer_id": desk.id,
        "webhook_id": endpoint.map(|endpoint| endpoint.id),
        "webhook_origin": endpoint.and_then(|endpoint| Origin::of(&endpoint.url)),
        "changed": changed,
    });
    desk.emit(cause, EventKind::WebhookUpdated, None, data);
}

/// Notes a change of this account in the audit.
fn audit(desk: &mut Desk, by: Actor, action: AuditAction, (from, to): (Option<String>, Option<String>)) {
    let entry = AuditEntry::new(by, action, &desk.id, desk.now).of_taxpayer(desk.id).between(from, to);
    desk.changes.audit.push(entry);
}

pub(super) fn disable_endpoint(desk: &mut Desk, as_of: Timestamp, reason: &str) -> Result<Reply, Refusal> {
    let mut endpoint = desk.books.endpoint.clone().ok_or(Refusal::WebhookNotConfigured)?;
    // The database keeps microseconds, the books may know it more exactly.
    let is_changed = endpoint.updated_at.as_microsecond() != as_of.as_microsecond();
    if is_changed || !endpoint.is_active {
        return Ok(Reply::Done);
    }
    endpoint.disabled_after = Some(desk.books.head.sequence);
    endpoint.is_active = false;
    endpoint.disabled_reason = Some(reason.to_owned());
    endpoint.updated_at = desk.now;
    put_endpoint(desk, endpoint);
    Ok(Reply::Done)
}

/// A secret is drawn each time and kept only by a record that is new.
pub(super) fn put_endpoint(desk: &mut Desk, endpoint: Endpoint) {
    desk.changes.endpoint = Some(Secret::generate(&mut clock::chance()).text());
    desk.books.endpoint = Some(endpoint);
}
