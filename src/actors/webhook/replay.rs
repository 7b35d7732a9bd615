//! Works replays off, a part of the log at a time. The part and the replay's place are one transaction under the
//! endpoint's lane, so that a process that dies goes on where it was and queues nothing twice. The order within
//! an IRN holds: what is newer than a replay's place waits while older events of its IRN are still ahead.

use std::collections::HashSet;

use crate::actors::webhook::courier::Satchel;
use crate::domain::delivery::{Delivery, Endpoint};
use crate::domain::event::Event;
use crate::domain::replay::Replay;
use crate::store::failure::StoreError;
use crate::store::lanes::{self, Lease};
use crate::store::replays;

impl Satchel {
    /// Puts aside the deliveries that a replay has older events for.
    pub(super) async fn keep_order(
        &self,
        next: Vec<(Delivery, Event)>,
        replays: &[Replay],
    ) -> Result<Vec<(Delivery, Event)>, StoreError> {
        let mut held = HashSet::new();
        for replay in replays {
            let newer = next.iter().map(|(delivery, _)| delivery).filter(|one| one.sequence > replay.reached);
            let irns: Vec<_> = newer.filter_map(Delivery::irn).map(str::to_owned).collect();
            if irns.is_empty() {
                continue;
            }
            let ahead = replays::irns_ahead(self.store.reader(), replay, irns).await?;
            let is_held = |delivery: &&Delivery| {
                delivery.sequence > replay.reached && delivery.irn().is_some_and(|irn| ahead.contains(irn))
            };
            held.extend(
                next.iter().map(|(delivery, _)| delivery).filter(is_held).map(|delivery| delivery.id),
            );
        }
        Ok(next.into_iter().filter(|(delivery, _)| !held.contains(&delivery.id)).collect())
    }

    /// Queues the next part of the replay that is nearest to its end, so that a small one does not wait for a
    /// large one.
    pub(super) async fn queue_next(
        &self,
        lease: &Lease,
        endpoint: &Endpoint,
        replays: Vec<Replay>,
    ) -> Result<(), StoreError> {
        let Some(replay) = replays.into_iter().min_by_key(Replay::remaining) else { return Ok(()) };
        let (tx, now) = (self.store.begin().await?, self.clock.now());
        lanes::fence(&tx, lease).await?;
        let replay = replays::queue(&tx, replay, &endpoint.enabled_kinds(), now).await?;
        tx.commit().await?;
        let (taxpayer, queued) = (endpoint.taxpayer_id, replay.queued);
        tracing::debug!(%taxpayer, replay = %replay.id, queued, "queued a part of a replay");
        Ok(())
    }
}
