//! Claims of lanes: due ones, those whose holder is gone, and those that go alone.

use std::collections::HashMap;
use std::time::Duration;

use sea_orm::sea_query::SelectStatement;

use crate::domain::kernel::ids::{IntegratorId, TaxpayerId};
use crate::store::accounts::taxpayers;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::abandoned::Ended;
use crate::store::lanes::fair_queue::{self, BlockedStep};
use crate::store::lanes::{self, LaneKind, LeasedLane};

/// The value of `ClaimRequest::after` that starts a round at the first taxpayer. It is less than every taxpayer
/// id.
pub const START: i64 = -1;
/// The taxpayer id of lanes without a taxpayer.
pub(super) const NOBODY: i64 = 0;

/// The lanes that a claim takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimable {
    /// Lanes that are due and have no holder.
    Due,
    /// Lanes that are due and whose lease has ended.
    Ended(Ended),
}

#[derive(Debug, Clone)]
pub struct ClaimRequest<'a> {
    pub kind: LaneKind,
    pub owner: &'a str,
    pub lease: Duration,
    pub limit: usize,
    /// The id of the last taxpayer that the previous claim served. This claim starts with the next higher id.
    pub after: i64,
    pub blocked: &'a [BlockedStep],
    pub share: FairShare,
}

/// The number of lanes that one taxpayer, and one integrator with all its taxpayers, may hold at a time, so that
/// their slow lanes leave room for others. Lanes without a taxpayer are not limited.
#[derive(Debug, Clone)]
pub struct FairShare {
    pub max: usize,
    /// The number of lanes that the dispatcher holds now, keyed by taxpayer id.
    pub held: HashMap<i64, usize>,
    pub integrator_max: usize,
    /// The same by integrator.
    pub held_by_integrator: HashMap<IntegratorId, usize>,
}

impl FairShare {
    #[cfg(test)]
    pub fn without_limits() -> Self {
        Self {
            max: usize::MAX,
            held: HashMap::new(),
            integrator_max: usize::MAX,
            held_by_integrator: HashMap::new(),
        }
    }

    /// Returns how many more lanes the taxpayer may hold.
    pub(super) fn room_left(&self, taxpayer: i64) -> usize {
        if taxpayer == NOBODY {
            return usize::MAX;
        }
        self.max.saturating_sub(self.held.get(&taxpayer).copied().unwrap_or(0))
    }

    /// The SQL condition that a lane's taxpayer may hold more lanes, beginning with `AND`. Empty if no taxpayer
    /// has reached its limit.
    pub(super) fn is_left(&self) -> String {
        let full: Vec<_> =
            self.held.keys().filter(|id| self.room_left(**id) == 0).map(ToString::to_string).collect();
        let taxpayers = match full.as_slice() {
            [] => String::new(),
            full => format!(" AND lanes.taxpayer_id NOT IN ({})", full.join(", ")),
        };
        let full: Vec<_> = self
            .held_by_integrator
            .keys()
            .filter(|id| self.left_to(**id) == 0)
            .map(ToString::to_string)
            .collect();
        match full.as_slice() {
            [] => taxpayers,
            full => format!(
                "{taxpayers} AND NOT EXISTS (SELECT 1 FROM taxpayers WHERE taxpayers.id = lanes.taxpayer_id \
                 AND taxpayers.integrator_id IN ({}))",
                full.join(", ")
            ),
        }
    }

    /// Returns how many more lanes the integrator may hold with all its taxpayers.
    fn left_to(&self, integrator: IntegratorId) -> usize {
        let held = self.held_by_integrator.get(&integrator).copied().unwrap_or(0);
        self.integrator_max.saturating_sub(held)
    }

    /// Leaves out the lanes beyond what their integrators may hold.
    pub(super) async fn within(
        &self,
        store: &Store,
        lanes: Vec<(i64, String)>,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        if self.integrator_max == usize::MAX {
            return Ok(lanes);
        }
        let mut added: HashMap<IntegratorId, usize> = HashMap::new();
        let mut kept = Vec::with_capacity(lanes.len());
        for lane in lanes {
            if lane.0 != NOBODY
                && let Some(integrator) = taxpayers::payer_of(store, TaxpayerId(lane.0)).await?
            {
                let added = added.entry(integrator).or_default();
                if *added >= self.left_to(integrator) {
                    continue;
                }
                *added += 1;
            }
            kept.push(lane);
        }
        Ok(kept)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedLane {
    pub taxpayer_id: i64,
    pub lane: LeasedLane,
}

/// The claimed lanes in the order in which to work on them. `last` is the taxpayer after whom the next claim of due
/// lanes starts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClaimedLanes {
    pub lanes: Vec<ClaimedLane>,
    pub last: Option<i64>,
}

/// Claims up to `limit` lanes, in turns between their taxpayers and within what each may hold.
pub async fn claim(
    store: &Store,
    which: Claimable,
    request: &ClaimRequest<'_>,
) -> Result<ClaimedLanes, StoreError> {
    match which {
        Claimable::Due => fair_queue::claim_due(store, request).await,
        Claimable::Ended(ended) => ended.claim(store, request).await,
    }
}

/// Claims those of the found lanes that `free` selects. Keeps their order.
pub(super) async fn claim_found(
    store: &Store,
    request: &ClaimRequest<'_>,
    found: Vec<(i64, String)>,
    free: SelectStatement,
) -> Result<Vec<ClaimedLane>, StoreError> {
    let claimed = lanes::claim_where(store, request.kind, request.owner, request.lease, free).await?;
    let mut claimed: HashMap<_, _> = claimed.into_iter().map(|lane| (lane.lease.key.clone(), lane)).collect();
    let in_order =
        |(taxpayer_id, key): (i64, String)| Some(ClaimedLane { taxpayer_id, lane: claimed.remove(&key)? });
    Ok(found.into_iter().filter_map(in_order).collect())
}
