//! Queues the events of replays, which deliver past events again, in parts. Each part is committed together with the
//! replay's new position, and only while the endpoint's lease is held. So a restarted process continues at that
//! position and queues nothing twice. To keep the order, the deliveries of events that a replay has yet to queue wait
//! for the replay, and so do deliveries of newer events of the same IRNs.

use std::slice::from_ref;

use database::StoreError;

use crate::actors::delivery::deps::DeliveryDeps;
use crate::domain::events::delivery::Delivery;
use crate::domain::events::endpoint::Endpoint;
use crate::domain::events::event::Event;
use crate::domain::events::replay::Replay;
use crate::store::lanes::leases;
use crate::store::lanes::{IfLocked, Lease};
use crate::store::webhooks::replays;

impl DeliveryDeps {
    /// Removes from `next` the deliveries that must wait for a replay: deliveries of events that the replay has not
    /// reached yet, and deliveries of newer events of the same IRNs.
    pub(super) async fn hold_back_for_replay(
        &self,
        mut next: Vec<(Delivery, Event)>,
        replays: &[Replay],
    ) -> Result<Vec<(Delivery, Event)>, StoreError> {
        next.retain(|(delivery, _)| {
            let mut replays = replays.iter();
            !replays.any(|replay| replay.must_still_process(delivery.sequence))
        });
        for replay in replays {
            let is_newer = |delivery: &Delivery| delivery.sequence > replay.until;
            let newer = next
                .iter()
                .map(|(delivery, _)| delivery)
                .filter(|delivery| is_newer(delivery));
            let irns: Vec<_> = newer.filter_map(Delivery::irn).map(str::to_owned).collect();
            if irns.is_empty() {
                continue;
            }
            let ahead = replays::irns_still_to_queue(self.store.reader(), replay, irns).await?;
            next.retain(|(delivery, _)| {
                !is_newer(delivery) || delivery.irn().is_none_or(|irn| !ahead.contains(irn))
            });
        }
        Ok(next)
    }

    /// Queues the next part of the replay with the fewest remaining events, so that a small replay does not wait for a
    /// large one.
    pub(super) async fn queue_next_part(
        &self,
        lease: &Lease,
        endpoint: &Endpoint,
        replays: Vec<Replay>,
    ) -> Result<(), StoreError> {
        let Some(replay) = replays.into_iter().min_by_key(Replay::remaining_events) else {
            return Ok(());
        };
        let tx = self.store.begin().await?;
        let now = self.clock.now();
        leases::fence(&tx, from_ref(lease), IfLocked::Await)
            .await?
            .require_held(lease)?;
        let replay = replays::queue_next_batch(&tx, replay, &endpoint.enabled_kinds(), now).await?;
        tx.commit().await?;
        let taxpayer = endpoint.taxpayer_id;
        let queued = replay.queued;
        tracing::debug!(%taxpayer, replay = %replay.id, queued, "queued a part of a replay");
        Ok(())
    }
}
