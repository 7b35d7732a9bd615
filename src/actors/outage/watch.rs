//! Takes in what this process saw of the authority. Whether there is anything to write is decided without a lock
//! first, since mostly there is not; then once more under the lane's lock, on the row as it is by then.

use jiff::SignedDuration;

use crate::authority::{Authority, BreakerView};
use crate::domain::kernel::clock::{self, SharedClock};
use crate::domain::outage::{Observation, OperationCalls, Outage};
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::{self, LaneKind};
use crate::store::operations::outages;

/// The only lane of its kind.
const LANE: &str = "authority";

/// Writes down the outages that this process sees.
#[derive(Clone)]
pub struct Watch {
    pub store: Store,
    pub clock: SharedClock,
    /// How long nothing may have failed before an outage is over: `authority.outage_clear_after_s`.
    pub quiet: SignedDuration,
}

impl Watch {
    /// Looks at the breakers of the authority.
    pub(super) async fn look_at(&self, authority: &Authority) -> Result<(), StoreError> {
        let sightings: Vec<_> = authority.breakers().iter().map(sighting).collect();
        self.look(&sightings, async || authority.alive().await).await
    }

    /// Takes in sightings. The authority itself is asked only about an outage of which nothing is heard any more.
    pub(super) async fn look(
        &self,
        sightings: &[OperationCalls],
        alive: impl AsyncFnOnce() -> bool,
    ) -> Result<(), StoreError> {
        let last = outages::last(self.store.reader()).await?;
        let (id, now, quiet) = (clock::new_id(), self.clock.now(), self.quiet);
        let mut look = Observation { id, now, quiet, sightings, is_alive: None };
        if look.needs_asking(last.as_ref()) {
            look.is_alive = Some(alive().await);
        }
        if is_news(last.as_ref(), look.at(last.as_ref()).as_ref()) { self.write(&look).await } else { Ok(()) }
    }

    async fn write(&self, look: &Observation<'_>) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        lanes::lock(&tx, LaneKind::Outage, LANE).await?;
        let last = outages::last(&tx).await?;
        let Some(after) = look.at(last.as_ref()).filter(|after| is_news(last.as_ref(), Some(after))) else {
            return tx.rollback().await;
        };
        let before = last.filter(|outage| outage.id == after.id);
        outages::save(&tx, &after).await?;
        if after.telling != before.as_ref().and_then(|outage| outage.telling) {
            lanes::make_due(&tx, LaneKind::Outage, &[LANE.to_owned()]).await?;
        }
        tx.commit().await?;
        log(before.is_none(), &after, look);
        Ok(())
    }
}

fn is_news(before: Option<&Outage>, after: Option<&Outage>) -> bool {
    after.is_some() && before != after
}

fn log(is_new: bool, outage: &Outage, look: &Observation<'_>) {
    let (id, operations) = (outage.id, outage.operations().join(", "));
    if is_new {
        tracing::warn!(outage = %id, operations, "an outage of the authority has started");
    }
    if !outage.is_open() {
        let duration_s = outage.duration_s(look.now);
        tracing::info!(outage = %id, operations, duration_s, "the outage of the authority is over");
    }
}

fn sighting(view: &BreakerView) -> OperationCalls {
    OperationCalls {
        operation: view.operation.name(),
        held_since: view.since.filter(|_| view.is_outage),
        failed_at: view.failed_at,
        answered_at: view.answered_at,
    }
}
