//! The commands about the webhook endpoint and its replays. A replay is only recorded here; the endpoint's worker
//! carries it out.

use jiff::Timestamp;
use serde_json::json;

use crate::actors::taxpayer::command::{CommandReply, NewReplay, WebhookChange};
use crate::actors::taxpayer::commands::account::audit_entry;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::events::delivery::{DeliveryState, Endpoint};
use crate::domain::events::event::EventKind;
use crate::domain::events::replay::{OPEN_REPLAYS_MAX, Replay, ReplayRange, ReplayScope};
use crate::domain::integration::origin::Origin;
use crate::domain::kernel::audit::{Actor, AuditAction, AuditEntry};
use crate::domain::kernel::clock;
use crate::domain::kernel::ids::CommandId;
use crate::domain::kernel::refusal::Refusal;
use crate::webhook::SigningSecret;

/// Sets the URL, events and schedule, and creates the endpoint at the first call. Every call also enables the endpoint,
/// because a caller who sets the URL wants notifications there.
pub(super) fn set(
    uow: &mut UnitOfWork,
    cause: CommandId,
    change: &WebhookChange,
) -> Result<CommandReply, Refusal> {
    uow.taxpayer()?;
    let now = uow.now;
    let before = uow.cached.endpoint.clone();
    let endpoint = before.clone().unwrap_or_else(|| Endpoint {
        id: uow.ids.webhook,
        taxpayer_id: uow.id,
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
    put_endpoint(uow, endpoint.clone());
    let changed = endpoint.changed_since(before.as_ref());
    if !changed.is_empty() {
        let origin = |endpoint: &Endpoint| Origin::of(&endpoint.url).map(|origin| origin.to_string());
        let to = format!("{} ({})", origin(&endpoint).unwrap_or_default(), changed.join(", "));
        let entry = audit_entry(uow, change.by, AuditAction::UpdateWebhook);
        uow.writes.audit.push(entry.between(before.as_ref().and_then(origin), Some(to)));
        emit_updated(uow, cause, &changed);
    }
    Ok(CommandReply::Endpoint(Box::new(endpoint)))
}

pub(super) fn rotate_secret(
    uow: &mut UnitOfWork,
    cause: CommandId,
    secret: &SigningSecret,
    by: Actor,
) -> Result<CommandReply, Refusal> {
    uow.taxpayer()?;
    let endpoint = uow.cached.endpoint.as_mut().ok_or(Refusal::WebhookNotConfigured)?;
    endpoint.public_key = secret.public_key();
    uow.writes.secrets.push(secret.clone());
    uow.writes.audit.push(audit_entry(uow, by, AuditAction::RotateWebhookSecret));
    emit_updated(uow, cause, &["secret"]);
    Ok(CommandReply::Done)
}

/// Emits the event that the webhook was changed. It names the origin of the URL only, because the path may contain a
/// secret of the receiver.
pub(super) fn emit_updated(uow: &mut UnitOfWork, cause: CommandId, changed: &[&str]) {
    let endpoint = uow.cached.endpoint.as_ref();
    let data = json!({
        "taxpayer_id": uow.id,
        "webhook_id": endpoint.map(|endpoint| endpoint.id),
        "webhook_origin": endpoint.and_then(|endpoint| Origin::of(&endpoint.url)),
        "changed": changed,
    });
    uow.emit(cause, EventKind::WebhookUpdated, None, &data);
}

/// Disables the endpoint, unless it was changed since `as_of`.
pub(super) fn disable(uow: &mut UnitOfWork, as_of: Timestamp, reason: &str) -> Result<CommandReply, Refusal> {
    let mut endpoint = uow.cached.endpoint.clone().ok_or(Refusal::WebhookNotConfigured)?;
    // Compares microseconds, because the cached endpoint may have nanoseconds, which the database does not store.
    let is_changed = endpoint.updated_at.as_microsecond() != as_of.as_microsecond();
    if is_changed || !endpoint.is_active {
        return Ok(CommandReply::Done);
    }
    endpoint.disabled_after = Some(uow.cached.head.sequence);
    endpoint.is_active = false;
    endpoint.disabled_reason = Some(reason.to_owned());
    endpoint.updated_at = uow.now;
    put_endpoint(uow, endpoint);
    Ok(CommandReply::Done)
}

/// Stores the endpoint. A new endpoint gets the secret generated here; an existing one keeps its own.
fn put_endpoint(uow: &mut UnitOfWork, endpoint: Endpoint) {
    uow.writes.endpoint = Some(SigningSecret::generate(&mut clock::chance()).text());
    uow.cached.endpoint = Some(endpoint);
}

/// Enables the endpoint and starts a replay if `scope` is given. A `Failed` replay covers the whole log, the others the
/// events since the endpoint was last disabled.
pub(super) fn enable(uow: &mut UnitOfWork, scope: Option<ReplayScope>) -> Result<CommandReply, Refusal> {
    let endpoint = configured(uow)?;
    let enabled = endpoint.clone().enabled(uow.now);
    let range = scope.map(|scope| match scope {
        ReplayScope::Failed => ReplayRange::since(scope, 1),
        ReplayScope::Missing | ReplayScope::All => {
            let after = endpoint.disabled_after.unwrap_or(0);
            ReplayRange { scope, after, until: i64::MAX }
        }
    });
    let replay = range.map(|range| start(uow, range)).transpose()?;
    put_endpoint(uow, enabled.clone());
    let scope = scope.map(|scope| format!("replay {scope}"));
    let entry = audit_entry(uow, uow.acting.actor, AuditAction::EnableWebhook).between(None, scope);
    uow.writes.audit.push(entry);
    Ok(CommandReply::Enabled(Box::new(enabled), replay))
}

/// Starts a replay, or returns an open replay that covers the same events.
pub(super) fn replay(uow: &mut UnitOfWork, request: &NewReplay) -> Result<CommandReply, Refusal> {
    if !configured(uow)?.is_active {
        return Err(Refusal::WebhookDisabled);
    }
    let replay = start(uow, request.range)?;
    let entry = if let Some((by, delivery)) = &request.by {
        let (action, subject) = match delivery {
            Some(delivery) => (AuditAction::ReplayDelivery, delivery),
            None => (AuditAction::ReplayDeadLetters, &replay.id),
        };
        let (dead, pending) = (DeliveryState::Dead.to_string(), DeliveryState::Pending.to_string());
        let entry = AuditEntry::ordered(by, action, subject, uow.now).of_taxpayer(uow.id);
        entry.between(Some(dead), Some(pending))
    } else {
        let entry = audit_entry(uow, uow.acting.actor, AuditAction::ReplayEvents);
        AuditEntry { subject: replay.id.to_string(), ..entry }
    };
    uow.writes.audit.push(entry);
    Ok(CommandReply::Replay(Box::new(replay)))
}

/// Cancels a replay; deliveries already queued are still sent. The endpoint's worker may finish the replay at the same
/// time, so the row is updated only if the replay is still open.
pub(super) fn cancel_replay(uow: &mut UnitOfWork, id: uuid::Uuid) -> Result<CommandReply, Refusal> {
    let now = uow.now;
    let found = uow.replays.iter_mut().find(|replay| replay.id == id && replay.is_open());
    let replay = found.ok_or(Refusal::ReplayEnded)?;
    *replay = replay.clone().cancelled(now);
    let replay = replay.clone();
    uow.writes.cancelled_replays.push(id);
    let entry = audit_entry(uow, uow.acting.actor, AuditAction::CancelReplay);
    uow.writes.audit.push(AuditEntry { subject: id.to_string(), ..entry });
    Ok(CommandReply::Replay(Box::new(replay)))
}

fn configured(uow: &UnitOfWork) -> Result<Endpoint, Refusal> {
    uow.cached.endpoint.clone().ok_or(Refusal::WebhookNotConfigured)
}

fn start(uow: &mut UnitOfWork, range: ReplayRange) -> Result<Replay, Refusal> {
    let head = uow.cached.head.sequence;
    let mut open = uow.replays.iter().filter(|replay| replay.is_open());
    if let Some(replay) = open.clone().find(|replay| replay.covers(range, head)) {
        return Ok(replay.clone());
    }
    if open.nth(OPEN_REPLAYS_MAX - 1).is_some() {
        return Err(Refusal::TooManyReplays);
    }
    let replay = Replay::open(clock::new_id(), uow.id, range, head, uow.now);
    uow.put_replay(replay.clone());
    Ok(replay)
}
