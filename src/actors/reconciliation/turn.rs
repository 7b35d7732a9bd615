//! Whose turn it is and what is due: first what was asked for, then the days that the timer looks at. One replica
//! has the lane and works on one day after the other; an authority that fails ends its round, and what was
//! interrupted is tried again.

use std::pin::pin;
use std::time::Duration;

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use tokio::time::timeout;

use crate::actors::reconciliation::desk::{BrokenOff, Reconciler, Rhythm};
use crate::actors::reconciliation::door::LANE;
use crate::domain::kernel::clock;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::reconciliation::day::{
    ATTEMPTS_MAX, AskedBy, Finding, Reconciliation, ReconciliationCounts, ReconciliationState, day_of,
    is_due, recent_days, span,
};
use crate::store::accounts::taxpayers;
use crate::store::db::error::StoreError;
use crate::store::lanes::abandoned;
use crate::store::lanes::leases;
use crate::store::lanes::{self, LaneKind, Lease};
use crate::store::operations::ledger_days;
use crate::store::operations::reconciliations;

/// How long what was interrupted rests, at most.
const REST_MAX: Duration = Duration::from_mins(5);

/// How a round ended.
enum Round {
    /// There is nothing more to do.
    Done,
    /// The authority, or the database, cannot be asked at present.
    CutShort,
}

/// Days that the timer still looks at in this round.
struct Plan {
    taxpayers: std::vec::IntoIter<TaxpayerId>,
    days: Vec<(TaxpayerId, Date)>,
}

impl Reconciler {
    /// Makes the first turn due: what was compared lately is passed over.
    pub async fn appoint(&self) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        abandoned::schedule_at_start(&tx, LaneKind::Reconciliation, LANE).await?;
        tx.commit().await
    }

    /// Takes a round if one is due and nobody else has it; whether it did.
    pub async fn reconcile_due(&self) -> Result<bool, StoreError> {
        if !lanes::any_due(&self.store, LaneKind::Reconciliation).await? {
            return Ok(false);
        }
        let (owner, lease) = (&self.schedule.owner, self.schedule.lease);
        let claimed = lanes::claim(&self.store, LaneKind::Reconciliation, owner, lease, 1).await?.pop();
        let Some(lease) = claimed else { return Ok(false) };
        let round = match self.round(&lease).await {
            // Another has taken over meanwhile; what we did, it finds done.
            Err(StoreError::Stale) => return Ok(false),
            Err(error) => {
                tracing::warn!(%error, "reconciling was cut short; it goes on later");
                Round::CutShort
            }
            Ok(round) => round,
        };
        self.end(&lease, &round).await?;
        Ok(true)
    }

    /// What was asked for meanwhile is worked on at once: who asks locks the lane's row too.
    async fn end(&self, lease: &Lease, round: &Round) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        let is_asked = reconciliations::any_in(&tx, ReconciliationState::Queued).await?;
        let is_left = reconciliations::any_in(&tx, ReconciliationState::Interrupted).await?;
        let delay = match (round, self.schedule.rhythm) {
            (Round::CutShort, _) => Some(self.rest()),
            (Round::Done, _) if is_asked => Some(Duration::ZERO),
            (Round::Done, Rhythm::Guest) => Some(Duration::ZERO),
            (Round::Done, _) if is_left => Some(self.rest()),
            (Round::Done, Rhythm::Every(every)) => Some(every),
            (Round::Done, Rhythm::OnDemand) => None,
        };
        lanes::release(&tx, lease, delay).await?;
        tx.commit().await
    }

    fn rest(&self) -> Duration {
        match self.schedule.rhythm {
            Rhythm::Every(every) => every.min(REST_MAX),
            Rhythm::OnDemand | Rhythm::Guest => REST_MAX,
        }
    }

    async fn round(&self, lease: &Lease) -> Result<Round, StoreError> {
        let mut plan = self.plan().await?;
        while let Some(one) = self.next(&mut plan).await? {
            if let Round::CutShort = self.work(lease, one).await? {
                return Ok(Round::CutShort);
            }
        }
        Ok(Round::Done)
    }

    async fn plan(&self) -> Result<Plan, StoreError> {
        let taxpayers = match self.schedule.rhythm {
            Rhythm::Every(_) => taxpayers::all_ids(&self.store).await?,
            Rhythm::OnDemand | Rhythm::Guest => Vec::new(),
        };
        Ok(Plan { taxpayers: taxpayers.into_iter(), days: Vec::new() })
    }

    async fn next(&self, plan: &mut Plan) -> Result<Option<Reconciliation>, StoreError> {
        let rest = SignedDuration::try_from(self.rest()).unwrap_or(SignedDuration::ZERO);
        if let Some(asked) = reconciliations::next_open(&self.store, self.clock.now(), rest).await? {
            return Ok(Some(asked));
        }
        loop {
            if let Some((taxpayer, day)) = plan.days.pop() {
                let identity = (clock::new_id(), self.clock.now());
                return Ok(Some(Reconciliation::asked(taxpayer, day, AskedBy::Timer, identity)));
            }
            let Some(taxpayer) = plan.taxpayers.next() else { return Ok(None) };
            plan.days = self.days_due(taxpayer).await?;
        }
    }

    /// The days of a taxpayer that the timer compares now: none where nothing has moved lately.
    async fn days_due(&self, taxpayer: TaxpayerId) -> Result<Vec<(TaxpayerId, Date)>, StoreError> {
        let (now, zone) = (self.clock.now(), self.schedule.zone);
        let Rhythm::Every(every) = self.schedule.rhythm else { return Ok(Vec::new()) };
        let days = recent_days(day_of(now, zone), self.schedule.days);
        let since = days.last().and_then(|day| span(*day, zone)).map_or(Timestamp::MIN, |(start, _)| start);
        if !ledger_days::has_moved_since(&self.store, taxpayer, since).await? {
            return Ok(Vec::new());
        }
        let mut due = Vec::new();
        for day in days {
            let last = reconciliations::last_done(&self.store, taxpayer, day).await?;
            let Some((_, end)) = span(day, zone) else { continue };
            if is_due(end, last, every, now) {
                due.push((taxpayer, day));
            }
        }
        Ok(due)
    }

    /// Works on one of them.
    async fn work(&self, lease: &Lease, one: Reconciliation) -> Result<Round, StoreError> {
        let is_spent = one.attempts >= ATTEMPTS_MAX;
        let one = one.begun(self.clock.now());
        self.save(lease, &one).await?;
        let visited = if is_spent { Err(BrokenOff::TooOften) } else { self.visit_holding(lease, &one).await };
        match visited {
            Ok((counts, findings)) => self.finish(lease, one.done(counts, self.clock.now()), &findings).await,
            Err(BrokenOff::Store(StoreError::Stale)) => Err(StoreError::Stale),
            Err(broken) => {
                let (is_final, error) = (broken.is_final(), broken.to_string());
                let one = one.broken_off(error, is_final, self.clock.now());
                tracing::warn!(
                    taxpayer = one.taxpayer_id.0, day = %one.day, state = %one.state, error = one.error,
                    "a day could not be reconciled"
                );
                self.save(lease, &one).await?;
                Ok(if is_final { Round::Done } else { Round::CutShort })
            }
        }
    }

    /// Keeps the lease alive meanwhile: one call of the authority may take longer than it.
    async fn visit_holding(
        &self,
        lease: &Lease,
        one: &Reconciliation,
    ) -> Result<(ReconciliationCounts, Vec<Finding>), BrokenOff> {
        let mut visit = pin!(self.visit(one));
        loop {
            if let Ok(visited) = timeout(self.schedule.lease / 3, &mut visit).await {
                return visited;
            }
            let held = std::slice::from_ref(lease);
            if let Err(error) = leases::renew(&self.store, lease.kind, held, self.schedule.lease).await {
                tracing::warn!(%error, "the lease of the reconciler could not be renewed");
            }
        }
    }

    async fn save(&self, lease: &Lease, one: &Reconciliation) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        reconciliations::save(&tx, one).await?;
        tx.commit().await
    }

    async fn finish(
        &self,
        lease: &Lease,
        one: Reconciliation,
        findings: &[Finding],
    ) -> Result<Round, StoreError> {
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        reconciliations::finish(&tx, &one, findings).await?;
        tx.commit().await?;
        let ReconciliationCounts { compared, mended, listed, .. } = one.counts;
        let (taxpayer, day) = (one.taxpayer_id.0, one.day);
        if listed > 0 {
            tracing::warn!(taxpayer, %day, id = %one.id, compared, mended, listed, "the authority's ledger and ours differ");
        } else if mended > 0 {
            tracing::info!(taxpayer, %day, id = %one.id, compared, mended, "what the authority's ledger told was mended");
        }
        Ok(Round::Done)
    }
}
