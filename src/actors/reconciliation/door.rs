//! The way to the reconciler: asks for a day to be compared, as a row that outlives this process, and waits for it.

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::Offset;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::domain::kernel::clock::{self, SharedClock};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::reconciliation::day::{AskedBy, Reconciliation, ReconciliationState, day_of};
use crate::store::accounts::taxpayers;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::store::lanes::{self, LaneKind};
use crate::store::operations::audit;
use crate::store::operations::reconciliations;

/// The only lane of its kind.
pub(super) const LANE: &str = "search";
/// How often one that waits looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Asks for reconciliations.
pub struct Reconciliations {
    store: Store,
    clock: SharedClock,
    /// The authority's.
    zone: Offset,
    /// Tells the reconciler of this process that something was asked for.
    pub(super) asked: Notify,
}

impl Reconciliations {
    pub fn new(store: Store, clock: SharedClock, zone: Offset) -> Self {
        Self { store, clock, zone, asked: Notify::new() }
    }

    /// Asks for a day of a taxpayer. When this is well it will be done, by this replica or another, now or later.
    pub async fn ask(
        &self,
        taxpayer: TaxpayerId,
        day: Date,
        operator: Option<OperatorRequest>,
    ) -> Result<Reconciliation, TaxpayerError> {
        let now = self.clock.now();
        if day > day_of(now, self.zone) {
            let message = "The day field must not be in the future.";
            return Err(TaxpayerError::Refused(Fault::new("day", "not_in_future", message).into()));
        }
        let known = taxpayers::with_id(self.store.reader(), taxpayer).await.map_err(TaxpayerError::Store)?;
        known.ok_or(TaxpayerError::Refused(Refusal::TaxpayerNotFound))?;
        let by = if operator.is_some() { AskedBy::Operator } else { AskedBy::CommandLine };
        let one = Reconciliation::asked(taxpayer, day, by, (clock::new_id(), now));
        self.open(&one, operator).await.map_err(TaxpayerError::Store)?;
        self.asked.notify_one();
        Ok(one)
    }

    async fn open(&self, one: &Reconciliation, operator: Option<OperatorRequest>) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        reconciliations::save(&tx, one).await?;
        let entry = operator.map(|order| entry(one, &order));
        audit::append(&tx, entry.as_slice()).await?;
        lanes::make_due(&tx, LaneKind::Reconciliation, &[LANE.to_owned()]).await?;
        tx.commit().await
    }

    /// How one is after it has ended or broken off, or the patience has; as it was asked for where there is none.
    pub async fn wait(
        &self,
        one: &Reconciliation,
        patience: Duration,
    ) -> Result<Reconciliation, TaxpayerError> {
        if patience.is_zero() {
            return Ok(one.clone());
        }
        let deadline = Instant::now() + patience;
        loop {
            let found = reconciliations::with_id(&self.store, one.id).await.map_err(TaxpayerError::Store)?;
            let found = found.unwrap_or_else(|| one.clone());
            let is_under_way = found.state.is_open() && found.state != ReconciliationState::Interrupted;
            if !is_under_way || Instant::now() >= deadline {
                return Ok(found);
            }
            sleep(LOOK_EVERY.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }
}

fn entry(one: &Reconciliation, order: &OperatorRequest) -> AuditEntry {
    let entry = AuditEntry::ordered(order, AuditAction::Reconcile, &one.id, one.created_at);
    entry.of_taxpayer(one.taxpayer_id).between(None, Some(one.state.to_string()))
}
