//! Schedules reconciliations: requested days first, then periodic days. The replica that holds the lane compares all
//! due days in one pass, one day after the other. If the authority fails, the pass ends, and the interrupted day is
//! compared again later.

use std::pin::pin;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised, WrapFuture};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use tokio::time::timeout;

use crate::actors::reconciliation::handle::LANE;
use crate::actors::reconciliation::reconciler::{Reconciler, ReconciliationError, ReconciliationMode};
use crate::actors::supervision::{Arbiters, NodeKind, RestartPolicy, Tree, supervise};
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

/// The longest delay before an interrupted day is retried.
const RETRY_DELAY_MAX: Duration = Duration::from_mins(5);

/// The interval at which the reconciler checks for due work if no request wakes it.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// The result of one pass over all due days.
enum PassResult {
    /// No due day is left.
    Done,
    /// The authority or the database is not available.
    Interrupted,
}

/// The taxpayers and days that are still to be compared periodically in this pass.
struct PeriodicPlan {
    taxpayers: std::vec::IntoIter<TaxpayerId>,
    days: Vec<(TaxpayerId, Date)>,
}

impl Reconciler {
    /// Makes a pass due at the start of the process. The pass skips days that were compared recently.
    pub async fn ensure_scheduled(&self) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        abandoned::schedule_at_start(&tx, LaneKind::Reconciliation, LANE).await?;
        tx.commit().await
    }

    /// Runs a pass if one is due and no other replica holds the lease. Returns true if the pass ran.
    pub async fn reconcile_due(&self) -> Result<bool, StoreError> {
        if !lanes::any_due(&self.store, LaneKind::Reconciliation).await? {
            return Ok(false);
        }
        let (owner, lease) = (&self.schedule.owner, self.schedule.lease);
        let claimed = lanes::claim(&self.store, LaneKind::Reconciliation, owner, lease, 1).await?.pop();
        let Some(lease) = claimed else { return Ok(false) };
        let result = match self.run_pass(&lease).await {
            // Another replica has taken over the lease. It compares the same days again, and a repeated comparison
            // changes nothing.
            Err(StoreError::Stale) => return Ok(false),
            Err(error) => {
                tracing::warn!(%error, "reconciliation was interrupted; will retry");
                PassResult::Interrupted
            }
            Ok(result) => result,
        };
        self.finish_pass(&lease, &result).await?;
        Ok(true)
    }

    /// Releases the lane. If a request arrived during the pass, the next pass is due at once. Requests lock the lane's
    /// row, so no request is missed.
    async fn finish_pass(&self, lease: &Lease, result: &PassResult) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        let is_requested = reconciliations::any_in(&tx, ReconciliationState::Queued).await?;
        let is_interrupted = reconciliations::any_in(&tx, ReconciliationState::Interrupted).await?;
        let delay = match (result, self.schedule.mode) {
            (PassResult::Interrupted, _) => Some(self.retry_delay()),
            (PassResult::Done, _) if is_requested => Some(Duration::ZERO),
            (PassResult::Done, ReconciliationMode::OneShot) => Some(Duration::ZERO),
            (PassResult::Done, _) if is_interrupted => Some(self.retry_delay()),
            (PassResult::Done, ReconciliationMode::Periodic(every)) => Some(every),
            (PassResult::Done, ReconciliationMode::OnDemand) => None,
        };
        lanes::release(&tx, lease, delay).await?;
        tx.commit().await
    }

    fn retry_delay(&self) -> Duration {
        match self.schedule.mode {
            ReconciliationMode::Periodic(every) => every.min(RETRY_DELAY_MAX),
            ReconciliationMode::OnDemand | ReconciliationMode::OneShot => RETRY_DELAY_MAX,
        }
    }

    async fn run_pass(&self, lease: &Lease) -> Result<PassResult, StoreError> {
        let mut plan = self.plan().await?;
        while let Some(due) = self.next_due(&mut plan).await? {
            if let PassResult::Interrupted = self.reconcile(lease, due).await? {
                return Ok(PassResult::Interrupted);
            }
        }
        Ok(PassResult::Done)
    }

    async fn plan(&self) -> Result<PeriodicPlan, StoreError> {
        let taxpayers = match self.schedule.mode {
            ReconciliationMode::Periodic(_) => taxpayers::all_ids(&self.store).await?,
            ReconciliationMode::OnDemand | ReconciliationMode::OneShot => Vec::new(),
        };
        Ok(PeriodicPlan { taxpayers: taxpayers.into_iter(), days: Vec::new() })
    }

    async fn next_due(&self, plan: &mut PeriodicPlan) -> Result<Option<Reconciliation>, StoreError> {
        let retry_delay = SignedDuration::try_from(self.retry_delay()).unwrap_or(SignedDuration::ZERO);
        if let Some(requested) =
            reconciliations::next_open(&self.store, self.clock.now(), retry_delay).await?
        {
            return Ok(Some(requested));
        }
        loop {
            if let Some((taxpayer, day)) = plan.days.pop() {
                let (id, now) = (clock::new_id(), self.clock.now());
                return Ok(Some(Reconciliation::asked(id, taxpayer, day, AskedBy::Timer, now)));
            }
            let Some(taxpayer) = plan.taxpayers.next() else { return Ok(None) };
            plan.days = self.days_due(taxpayer).await?;
        }
    }

    /// Returns the periodic days of a taxpayer that are due for comparison. Returns no day if the taxpayer's ledger has
    /// not changed since the start of the earliest periodic day.
    async fn days_due(&self, taxpayer: TaxpayerId) -> Result<Vec<(TaxpayerId, Date)>, StoreError> {
        let (now, zone) = (self.clock.now(), self.schedule.zone);
        let ReconciliationMode::Periodic(every) = self.schedule.mode else { return Ok(Vec::new()) };
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

    /// Compares one day and stores the result.
    async fn reconcile(
        &self,
        lease: &Lease,
        reconciliation: Reconciliation,
    ) -> Result<PassResult, StoreError> {
        let is_exhausted = reconciliation.attempts >= ATTEMPTS_MAX;
        let reconciliation = reconciliation.begun(self.clock.now());
        self.save(lease, &reconciliation).await?;
        let compared = if is_exhausted {
            Err(ReconciliationError::AttemptsExhausted)
        } else {
            self.compare_day_leased(lease, &reconciliation).await
        };
        match compared {
            Ok((counts, findings)) => {
                self.finish(lease, reconciliation.done(counts, self.clock.now()), &findings).await
            }
            Err(ReconciliationError::Store(StoreError::Stale)) => Err(StoreError::Stale),
            Err(failure) => {
                let (is_final, error) = (failure.is_final(), failure.to_string());
                let reconciliation = reconciliation.broken_off(error, is_final, self.clock.now());
                tracing::warn!(
                    taxpayer = reconciliation.taxpayer_id.0, day = %reconciliation.day, state = %reconciliation.state,
                    error = reconciliation.error,
                    "failed to reconcile a day"
                );
                self.save(lease, &reconciliation).await?;
                Ok(if is_final { PassResult::Done } else { PassResult::Interrupted })
            }
        }
    }

    /// Compares a day and renews the lease during the comparison, because a single call to the authority may last
    /// longer than the lease.
    async fn compare_day_leased(
        &self,
        lease: &Lease,
        reconciliation: &Reconciliation,
    ) -> Result<(ReconciliationCounts, Vec<Finding>), ReconciliationError> {
        let mut comparison = pin!(self.compare_day(reconciliation));
        loop {
            if let Ok(compared) = timeout(self.schedule.lease / 3, &mut comparison).await {
                return compared;
            }
            let held = std::slice::from_ref(lease);
            if let Err(error) = leases::renew(&self.store, lease.kind, held, self.schedule.lease).await {
                tracing::warn!(%error, "failed to renew the lease of the reconciler");
            }
        }
    }

    async fn save(&self, lease: &Lease, reconciliation: &Reconciliation) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        reconciliations::save(&tx, reconciliation).await?;
        tx.commit().await
    }

    async fn finish(
        &self,
        lease: &Lease,
        reconciliation: Reconciliation,
        findings: &[Finding],
    ) -> Result<PassResult, StoreError> {
        let tx = self.store.begin().await?;
        lanes::fence(&tx, lease).await?;
        reconciliations::finish(&tx, &reconciliation, findings).await?;
        tx.commit().await?;
        let ReconciliationCounts { compared, repaired, listed, .. } = reconciliation.counts;
        let (taxpayer, day) = (reconciliation.taxpayer_id.0, reconciliation.day);
        if listed > 0 {
            tracing::warn!(taxpayer, %day, id = %reconciliation.id, compared, repaired, listed, "the authority's ledger differs from ours");
        } else if repaired > 0 {
            tracing::info!(taxpayer, %day, id = %reconciliation.id, compared, repaired, "repaired differences from the authority's ledger");
        }
        Ok(PassResult::Done)
    }
}

impl Reconciler {
    /// Starts the reconciler under supervision on the background arbiter.
    pub fn start(self, tree: &Tree, arbiters: &Arbiters) -> Addr<ReconcilerActor> {
        let node = tree.node(NodeKind::Inbound, 0, "reconciler");
        supervise(arbiters.background(), node, RestartPolicy::default(), |ctx| ReconcilerActor {
            reconciler: self,
            _address: ctx.address(),
        })
    }

    async fn run(self) {
        loop {
            if let Err(error) = self.reconcile_due().await {
                tracing::warn!(%error, "failed to run the reconciler; will retry");
            }
            // The result does not matter: the reconciler checks for due work after a wakeup and after a timeout.
            let _ = timeout(CHECK_EVERY, self.handle.requested.notified()).await;
        }
    }
}

pub struct ReconcilerActor {
    reconciler: Reconciler,
    /// The actor's own address. actix does not stop the actor while this address exists.
    _address: Addr<Self>,
}

impl Actor for ReconcilerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.spawn(self.reconciler.clone().run().into_actor(self));
    }
}

impl Supervised for ReconcilerActor {}
