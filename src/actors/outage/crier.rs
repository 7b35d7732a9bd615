//! Tells the taxpayers that asked for it, through their actors, some at a time: one replica does it, and its place
//! is written down after each part. One that cannot be told holds up no other; it gets another turn.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::actors::taxpayer::door::{Failure, Taxpayers};
use crate::domain::clock::SharedClock;
use crate::domain::ids::{OutageId, TaxpayerId};
use crate::domain::outage::{Outage, OutageNotice, Part};
use crate::store::database::Store;
use crate::store::failure::StoreError;
use crate::store::lanes::{self, LaneKind, Lease};
use crate::store::outages;

/// Taxpayers that are told at once: so few that their actors and the database have room for others.
pub(super) const AT_ONCE: u64 = 32;
/// When those that could not be told get another turn.
const AFTER_MISS: Duration = Duration::from_secs(1);

/// Tells of outages.
#[derive(Clone)]
pub struct Crier {
    pub store: Store,
    pub clock: SharedClock,
    pub taxpayers: Arc<Taxpayers>,
    /// Names this process in the lease.
    pub owner: String,
    pub lease: Duration,
}

impl Crier {
    /// Tells some of those that are to be told; whether there are more to tell at once.
    pub async fn tell_due(&self) -> Result<bool, StoreError> {
        if !lanes::any_due(&self.store, LaneKind::Outage).await? {
            return Ok(false);
        }
        let claimed = lanes::claim(&self.store, LaneKind::Outage, &self.owner, self.lease, 1).await?;
        let Some(lease) = claimed.into_iter().next() else { return Ok(false) };
        let told = match outages::to_tell(self.store.reader()).await? {
            Some(outage) => self.tell_some(&outage).await?,
            None => None,
        };
        match self.end(&lease, told).await {
            // Another has taken over meanwhile; whom we told, it finds told.
            Err(StoreError::Stale) => Ok(false),
            ended => ended,
        }
    }

    async fn tell_some(&self, outage: &Outage) -> Result<Option<(OutageId, Part)>, StoreError> {
        let (Some(telling), Some(notice)) = (outage.telling, outage.notice()) else { return Ok(None) };
        let news = (outage.id, telling.edge);
        let next = outages::untold(&self.store, news, telling.reached, AT_ONCE).await?;
        let told = join_all(next.iter().map(|id| self.tell(*id, notice.clone()))).await;
        let has_missed = told.contains(&false);
        Ok(Some((outage.id, Part { edge: telling.edge, reached: next.last().copied(), has_missed })))
    }

    /// Whether a taxpayer has had its turn. One whose books cannot be written at all has had it.
    async fn tell(&self, id: TaxpayerId, notice: OutageNotice) -> bool {
        let Err(failure) = self.taxpayers.tell_outage(id, notice).await else { return true };
        let is_passing = is_passing(&failure);
        if is_passing {
            tracing::info!(taxpayer = %id, %failure, "a taxpayer could not be told of an outage yet");
        } else {
            tracing::error!(taxpayer = %id, %failure, "a taxpayer cannot be told of an outage");
        }
        !is_passing
    }

    async fn end(&self, lease: &Lease, told: Option<(OutageId, Part)>) -> Result<bool, StoreError> {
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        let mut delay = Duration::ZERO;
        if let Some((id, part)) = told
            && let Some(outage) = outages::with_id(&tx, id).await?
        {
            let after = outage.told(part, self.clock.now());
            let starts_again =
                part.reached.is_none() && after.telling.is_some_and(|next| next.edge == part.edge);
            delay = if starts_again { AFTER_MISS } else { Duration::ZERO };
            outages::save(&tx, &after).await?;
        }
        let is_left = outages::to_tell(&tx).await?.is_some();
        lanes::release(&tx, lease, is_left.then_some(delay)).await?;
        tx.commit().await?;
        Ok(is_left && delay.is_zero())
    }
}

/// Whether the same may work in a moment.
fn is_passing(failure: &Failure) -> bool {
    match failure {
        Failure::Busy { .. } | Failure::Overloaded { .. } | Failure::Interrupted { .. } => true,
        Failure::Store(error) => !matches!(error, StoreError::Corrupt { .. }),
        Failure::Refused(_) | Failure::Quarantined { .. } | Failure::CarriedOut => false,
    }
}
