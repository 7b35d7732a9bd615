//! A webhook back in service, and events that are delivered once more. Here a replay is only noted, beside the
//! end of the log at this moment; whoever holds the endpoint's lane works it off, until it ends or is cancelled.

use crate::actors::taxpayer::command::{ReplayOrder, Reply};
use crate::actors::taxpayer::decide::account::put_endpoint;
use crate::actors::taxpayer::desk::Desk;
use crate::domain::events::delivery::{DeliveryState, Endpoint};
use crate::domain::events::replay::{OPEN_REPLAYS_MAX, Replay, ReplayRange, ReplayScope};
use crate::domain::kernel::audit::{AuditAction, AuditEntry};
use crate::domain::kernel::clock;
use crate::domain::kernel::refusal::Refusal;

/// Dead letters are replayed whenever they died, what is missing since the endpoint was last disabled; where it
/// never was, from the beginning of the log.
pub(super) fn enable(desk: &mut Desk, scope: Option<ReplayScope>) -> Result<Reply, Refusal> {
    let endpoint = configured(desk)?;
    let enabled = endpoint.clone().enabled(desk.now);
    let range = scope.map(|scope| match scope {
        ReplayScope::Failed => ReplayRange::since(scope, 1),
        ReplayScope::Missing | ReplayScope::All => {
            let after = endpoint.disabled_after.unwrap_or(0);
            ReplayRange { scope, after, until: i64::MAX }
        }
    });
    let replay = range.map(|range| begin(desk, range)).transpose()?;
    put_endpoint(desk, enabled.clone());
    Ok(Reply::Enabled(Box::new(enabled), replay))
}

/// Begins a replay, or joins the one under way that does the same.
pub(super) fn replay(desk: &mut Desk, order: &ReplayOrder) -> Result<Reply, Refusal> {
    if !configured(desk)?.is_active {
        return Err(Refusal::WebhookDisabled);
    }
    let replay = begin(desk, order.range)?;
    if let Some((by, delivery)) = &order.by {
        let (action, subject) = match delivery {
            Some(delivery) => (AuditAction::ReplayDelivery, delivery),
            None => (AuditAction::ReplayDeadLetters, &replay.id),
        };
        let (dead, pending) = (DeliveryState::Dead.to_string(), DeliveryState::Pending.to_string());
        let entry = AuditEntry::ordered(by, action, subject, desk.now);
        desk.changes.audit.push(entry.of_taxpayer(desk.id).between(Some(dead), Some(pending)));
    }
    Ok(Reply::Replay(Box::new(replay)))
}

/// What it has queued is delivered all the same. The row is changed where it is still under way, since whoever
/// works it off does so beside this.
pub(super) fn cancel_replay(desk: &mut Desk, id: uuid::Uuid) -> Result<Reply, Refusal> {
    let now = desk.now;
    let found = desk.replays.iter_mut().find(|replay| replay.id == id && replay.is_open());
    let replay = found.ok_or(Refusal::ReplayEnded)?;
    *replay = replay.clone().cancelled(now);
    let replay = replay.clone();
    desk.changes.cancelled_replays.push(id);
    Ok(Reply::Replay(Box::new(replay)))
}

fn configured(desk: &Desk) -> Result<Endpoint, Refusal> {
    desk.books.endpoint.clone().ok_or(Refusal::WebhookNotConfigured)
}

fn begin(desk: &mut Desk, range: ReplayRange) -> Result<Replay, Refusal> {
    let head = desk.books.head.sequence;
    let mut open = desk.replays.iter().filter(|replay| replay.is_open());
    if let Some(replay) = open.clone().find(|replay| replay.covers(range, head)) {
        return Ok(replay.clone());
    }
    if open.nth(OPEN_REPLAYS_MAX - 1).is_some() {
        return Err(Refusal::TooManyReplays);
    }
    let replay = Replay::open(clock::new_id(), desk.id, range, (head, desk.now));
    desk.put_replay(replay.clone());
    Ok(replay)
}
