//! Compares a taxpayer's invoices with the authority's, one day at a time, under the taxpayer's lane. Days that someone
//! requested come first, then the scheduled days that are due. If the authority fails, the day is retried later. A
//! separate lane, the timer, makes the lanes of taxpayers due.

use std::slice::from_ref;
use std::sync::Arc;
use std::time::Duration;

use authority_client::{Authority, AuthorityFailure, HeldCallers, Operation};
use database::{StoreError, Transaction};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;
use timing::clock::{self, SharedClock};

use crate::actors::dispatch::WorkStatus;
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::reconciliation::day::{
    ATTEMPTS_MAX, AskedBy, DayFindings, Reconciliation, ReconciliationCounts, ReconciliationState,
    day_at, day_span, is_due, recent_days,
};
use crate::store::Store;
use crate::store::lanes::fair_queue::BlockedStep;
use crate::store::lanes::leases::{self, LaneRelease};
use crate::store::lanes::{self, IfLocked, LaneKind, LanesToWake, Lease};
use crate::store::operations::ledger_days;
use crate::store::operations::reconciliations::{self, TIMER};

/// The longest delay before an interrupted day is retried.
const RETRY_DELAY_MAX: Duration = Duration::from_mins(5);

/// The days that are compared without a request, and when.
#[derive(Debug, Clone)]
pub struct ReconciliationSchedule {
    /// Today is compared at this interval, and each earlier day once after its end. If `None`, days are compared only
    /// on request.
    pub every: Option<Duration>,
    /// The number of days that are compared without a request, including today.
    pub days: u32,
    pub zone: Offset,
}

/// Compares our ledger with the authority's ledger.
#[derive(Clone)]
pub struct Reconciler {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub authority: Authority,
    pub clock: SharedClock,
    pub schedule: ReconciliationSchedule,
}

/// Returns the blocked step that holds back the lanes that the timer has made due: `TIMER` is the next step of each of
/// them, so the dispatcher does not claim them while it gets this value.
pub fn blocked_timer_step() -> BlockedStep {
    BlockedStep {
        step: TIMER,
        taxpayers: None,
    }
}

impl Reconciler {
    /// Makes the timer's lane due when the process starts. Days that were compared recently are not compared again.
    pub async fn ensure_scheduled(&self) -> Result<(), StoreError> {
        if self.schedule.every.is_none() {
            return Ok(());
        }
        let tx = self.store.begin().await?;
        lanes::wake(
            &tx,
            LaneKind::Reconciliation,
            &[TIMER.to_owned()],
            LanesToWake::WithoutHolder,
        )
        .await?;
        tx.commit().await
    }

    /// Returns `blocked_timer_step` while the authority cannot be searched, which holds back the lanes that the timer
    /// has made due. Otherwise returns an empty list.
    pub fn blocked_steps(&self) -> Vec<BlockedStep> {
        let views = self.authority.breakers();
        let search = views
            .iter()
            .find(|view| view.operation == Operation::Search);
        let held_search = search.filter(|view| matches!(view.held, HeldCallers::Everybody));
        held_search
            .map(|_| blocked_timer_step())
            .into_iter()
            .collect()
    }

    /// Does the work of a lane: the timer makes lanes of taxpayers due, and any other lane compares the due days of its
    /// taxpayer. If another replica takes over the lane, it compares the same days again, which changes nothing.
    pub async fn work(&self, lease: &Lease) -> Result<WorkStatus, StoreError> {
        if lease.key == TIMER {
            self.queue_taxpayers(lease).await?;
        } else if let Ok(id) = lease.key.parse() {
            self.reconcile_due(lease, TaxpayerId(id)).await?;
        }
        Ok(WorkStatus::Released)
    }

    /// Makes a taxpayer's lane due if one of its runs changed since the start of the first scheduled day. A process
    /// without a schedule makes no lane due; it only releases the timer's lane.
    async fn queue_taxpayers(&self, lease: &Lease) -> Result<(), StoreError> {
        let tx = self.begin_as_holder(lease).await?;
        if self.schedule.every.is_some() {
            reconciliations::queue_changed_taxpayers(
                &tx,
                self.first_day_start(&self.scheduled_days()),
            )
            .await?;
        }
        let delay = self.schedule.every.unwrap_or(RETRY_DELAY_MAX);
        leases::release(&tx, &[LaneRelease::new(lease, Some(delay))]).await?;
        tx.commit().await
    }

    /// Compares the due days of a taxpayer and releases the lane. If a request arrived meanwhile, the lane is due at
    /// once. A request locks the lane's row, so no request is missed.
    async fn reconcile_due(&self, lease: &Lease, taxpayer: TaxpayerId) -> Result<(), StoreError> {
        let mut due_days = self.due_scheduled_days(taxpayer).await?;
        let mut is_interrupted = false;
        while !is_interrupted && let Some(due) = self.next_due(taxpayer, &mut due_days).await? {
            is_interrupted = self.compare_and_store(lease, due).await?;
        }
        let tx = self.begin_as_holder(lease).await?;
        let delay = if is_interrupted {
            Some(
                self.schedule
                    .every
                    .unwrap_or(RETRY_DELAY_MAX)
                    .min(RETRY_DELAY_MAX),
            )
        } else {
            reconciliations::next_open(&tx, taxpayer)
                .await?
                .map(|_| Duration::ZERO)
        };
        leases::release(&tx, &[LaneRelease::new(lease, delay)]).await?;
        tx.commit().await
    }

    async fn next_due(
        &self,
        taxpayer: TaxpayerId,
        due_days: &mut Vec<Date>,
    ) -> Result<Option<Reconciliation>, StoreError> {
        if let Some(open) = reconciliations::next_open(self.store.reader(), taxpayer).await? {
            return Ok(Some(open));
        }
        let Some(day) = due_days.pop() else {
            return Ok(None);
        };
        Ok(Some(Reconciliation::new(
            clock::new_id(),
            taxpayer,
            day,
            AskedBy::Timer,
            self.clock.now(),
        )))
    }

    /// Returns the scheduled days of a taxpayer that are due for comparison. Returns no day if no run of the taxpayer
    /// has changed since the start of the first scheduled day.
    async fn due_scheduled_days(&self, taxpayer: TaxpayerId) -> Result<Vec<Date>, StoreError> {
        let Some(every) = self.schedule.every else {
            return Ok(Vec::new());
        };
        let days = self.scheduled_days();
        if !ledger_days::has_changed_runs_since(&self.store, taxpayer, self.first_day_start(&days))
            .await?
        {
            return Ok(Vec::new());
        }
        let mut due = Vec::new();
        for day in days {
            let last = reconciliations::last_completed_start(&self.store, taxpayer, day).await?;
            let Some(span) = day_span(day, self.schedule.zone) else {
                continue;
            };
            if is_due(span.end, last, every, self.clock.now()) {
                due.push(day);
            }
        }
        Ok(due)
    }

    fn scheduled_days(&self) -> Vec<Date> {
        recent_days(
            day_at(self.clock.now(), self.schedule.zone),
            self.schedule.days,
        )
    }

    fn first_day_start(&self, days: &[Date]) -> Timestamp {
        let first = days
            .last()
            .and_then(|day| day_span(*day, self.schedule.zone));
        first.map_or(Timestamp::MIN, |span| span.start)
    }

    /// Compares one day and stores the result. Returns true if the comparison was interrupted and is to be repeated.
    async fn compare_and_store(
        &self,
        lease: &Lease,
        reconciliation: Reconciliation,
    ) -> Result<bool, StoreError> {
        let is_exhausted = reconciliation.attempts >= ATTEMPTS_MAX;
        let reconciliation = reconciliation.begin(self.clock.now());
        self.save(lease, &reconciliation).await?;
        let compared = if is_exhausted {
            Err(ReconciliationError::AttemptsExhausted)
        } else {
            self.compare_day(&reconciliation).await
        };
        match compared {
            Ok((counts, found)) => {
                let reconciliation = reconciliation.finish(counts, self.clock.now());
                log(&self.finish(lease, reconciliation, found).await?);
                Ok(false)
            }
            Err(ReconciliationError::Store(StoreError::Stale)) => Err(StoreError::Stale),
            Err(failure) => {
                let is_final = failure.is_final();
                let error = failure.to_string();
                let reconciliation =
                    reconciliation.record_failure(error, is_final, self.clock.now());
                tracing::warn!(
                    taxpayer = reconciliation.taxpayer_id.0, day = %reconciliation.day, state = %reconciliation.state,
                    error = reconciliation.error,
                    "failed to reconcile a day"
                );
                self.save(lease, &reconciliation).await?;
                Ok(!is_final)
            }
        }
    }

    async fn save(&self, lease: &Lease, reconciliation: &Reconciliation) -> Result<(), StoreError> {
        let tx = self.begin_as_holder(lease).await?;
        reconciliations::save(&tx, reconciliation).await?;
        if reconciliation.state == ReconciliationState::Failed {
            reconciliations::delete_earlier_failures(&tx, reconciliation).await?;
        }
        tx.commit().await
    }

    /// Stores a completed reconciliation with its findings. Returns it with its final counts.
    async fn finish(
        &self,
        lease: &Lease,
        reconciliation: Reconciliation,
        found: DayFindings,
    ) -> Result<Reconciliation, StoreError> {
        let tx = self.begin_as_holder(lease).await?;
        let reconciliation = reconciliations::finish(&tx, reconciliation, found).await?;
        tx.commit().await?;
        Ok(reconciliation)
    }

    /// Begins a transaction that fails if another replica holds the lane.
    async fn begin_as_holder(&self, lease: &Lease) -> Result<Transaction, StoreError> {
        let tx = self.store.begin().await?;
        leases::fence(&tx, from_ref(lease), IfLocked::Await)
            .await?
            .require_held(lease)?;
        Ok(tx)
    }
}

fn log(reconciliation: &Reconciliation) {
    let ReconciliationCounts {
        compared,
        repaired,
        listed,
        ..
    } = reconciliation.counts;
    let taxpayer = reconciliation.taxpayer_id.0;
    let day = reconciliation.day;
    if listed > 0 {
        tracing::warn!(taxpayer, %day, id = %reconciliation.id, compared, repaired, listed, "the authority's ledger differs from ours");
    } else if repaired > 0 {
        tracing::info!(taxpayer, %day, id = %reconciliation.id, compared, repaired, "repaired differences from the authority's ledger");
    }
}

/// Why a reconciliation did not complete.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReconciliationError {
    #[error("the taxpayer no longer exists")]
    UnknownTaxpayer,
    #[error("the day is too far back: {0} pages of the authority's search did not reach it")]
    TooFarBack(u32),
    #[error("it was started too often and never completed")]
    AttemptsExhausted,
    #[error(transparent)]
    Authority(#[from] AuthorityFailure),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Taxpayer(#[from] TaxpayerError),
}

impl ReconciliationError {
    /// True if another try would fail in the same way.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::UnknownTaxpayer | Self::TooFarBack(_) | Self::AttemptsExhausted => true,
            Self::Authority(failure) => failure.is_final(),
            Self::Store(error) => matches!(error, StoreError::Corrupt { .. }),
            Self::Taxpayer(failure) => matches!(failure, TaxpayerError::Quarantined { .. }),
        }
    }
}
