//! The commands about replays. A replay is only recorded here; the endpoint's worker carries it out.

use timing::clock;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::account::audit_entry;
use crate::actors::taxpayer::commands::webhook::configured_endpoint;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::replay::{OPEN_REPLAYS_MAX, Replay, ReplayRange};
use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::domain::kernel::ids::EndpointKey;
use crate::domain::kernel::refusal::Refusal;

/// Starts a replay, or returns an open replay that covers the same events.
#[derive(Debug, Clone)]
pub struct StartReplay {
    pub endpoint: EndpointKey,
    pub range: ReplayRange,
    /// Set if an operator requests the replay: the request, for the audit trail, and the deliveries if the operator
    /// chose them.
    pub by: Option<(OperatorRequest, Vec<uuid::Uuid>)>,
}

/// Cancels a replay; deliveries already queued are still sent.
pub struct CancelReplay(pub uuid::Uuid);

impl TaxpayerCommand for StartReplay {
    type Output = Replay;

    const NAME: &'static str = "replay";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_replays();
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Replay, Refusal> {
        let endpoint = configured_endpoint(uow, self.endpoint)?;
        if !endpoint.is_active {
            return Err(Refusal::WebhookDisabled);
        }
        let replay = start_replay(uow, &endpoint, self.range.clone())?;
        let entries = self.audit_entries(uow, &replay);
        uow.writes.audit.extend(entries);
        Ok(replay)
    }
}

impl StartReplay {
    /// Returns an audit entry for each delivery that an operator chose; if none was chosen, one for the whole replay.
    fn audit_entries(&self, uow: &UnitOfWork, replay: &Replay) -> Vec<AuditEntry> {
        let Some((by, deliveries)) = &self.by else {
            let entry = audit_entry(uow, uow.acting.actor, AuditAction::ReplayEvents);
            return vec![AuditEntry {
                subject: replay.id.to_string(),
                ..entry
            }];
        };
        let entry = |action, subject: &uuid::Uuid| {
            let dead = DeliveryState::Dead.to_string();
            let pending = DeliveryState::Pending.to_string();
            AuditEntry::for_operator_request(by, action, subject, uow.now)
                .for_taxpayer(uow.id)
                .with_states(Some(dead), Some(pending))
        };
        if deliveries.is_empty() {
            return vec![entry(AuditAction::ReplayDeadLetters, &replay.id)];
        }
        let deliveries = deliveries.iter();
        deliveries
            .map(|delivery| entry(AuditAction::ReplayDelivery, delivery))
            .collect()
    }
}

impl TaxpayerCommand for CancelReplay {
    type Output = Replay;

    const NAME: &'static str = "cancel-replay";

    fn add_reads(&self, wanted: &mut ReadSet, _: &ReadContext<'_>) {
        wanted.add_replays();
    }

    /// The endpoint's worker may finish the replay at the same time, so the row is updated only if the replay is still
    /// open.
    fn execute(&self, uow: &mut UnitOfWork) -> Result<Replay, Refusal> {
        let now = uow.now;
        let found = uow
            .replays
            .iter_mut()
            .find(|replay| replay.id == self.0 && replay.is_open());
        let replay = found.ok_or(Refusal::ReplayEnded)?;
        *replay = replay.clone().cancel(now);
        let replay = replay.clone();
        uow.writes.cancelled_replays.push(replay.clone());
        let entry = audit_entry(uow, uow.acting.actor, AuditAction::CancelReplay);
        uow.writes.audit.push(AuditEntry {
            subject: self.0.to_string(),
            ..entry
        });
        Ok(replay)
    }
}

pub(super) fn start_replay(
    uow: &mut UnitOfWork,
    endpoint: &Endpoint,
    range: ReplayRange,
) -> Result<Replay, Refusal> {
    let head = uow.head.sequence;
    let replays = uow.replays.iter();
    let mut open = replays.filter(|replay| replay.endpoint == endpoint.key && replay.is_open());
    if let Some(replay) = open.clone().find(|replay| replay.covers(&range, head)) {
        return Ok(replay.clone());
    }
    if open.nth(OPEN_REPLAYS_MAX - 1).is_some() {
        return Err(Refusal::TooManyReplays);
    }
    let replay = Replay::new(clock::new_id(), endpoint, range, head, uow.now);
    uow.put_replay(replay.clone());
    Ok(replay)
}
