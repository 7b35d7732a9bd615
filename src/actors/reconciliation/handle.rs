//! Requests reconciliations and waits for them. A request is a row in the database, so it outlives this process.

use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use jiff::civil::Date;
use jiff::tz::Offset;
use timing::clock::{self, SharedClock};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use crate::actors::taxpayer::handle::TaxpayerError;
use crate::domain::kernel::audit::{AuditAction, AuditEntry, OperatorRequest};
use crate::domain::kernel::fault::Fault;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::reconciliation::day::{AskedBy, Reconciliation, ReconciliationState, day_at};
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::lanes::{self, LaneKind, QueuedLane};
use crate::store::operations::audit;
use crate::store::operations::reconciliations;

/// The interval at which a waiting caller reads the row of its request.
const POLL_EVERY: Duration = Duration::from_millis(100);

pub struct ReconciliationHandle {
    store: Store,
    clock: SharedClock,
    /// The authority's time zone.
    zone: Offset,
    /// Wakes the dispatcher of this process when a reconciliation was requested.
    pub requested: Arc<Notify>,
}

impl ReconciliationHandle {
    pub fn new(store: Store, clock: SharedClock, zone: Offset) -> Self {
        Self {
            store,
            clock,
            zone,
            requested: Arc::default(),
        }
    }

    /// Requests the comparison of a taxpayer's day. On success the request is durable, and this replica or another one
    /// makes the comparison.
    pub async fn queue_comparison(
        &self,
        taxpayer: TaxpayerId,
        day: Date,
        operator: Option<OperatorRequest>,
    ) -> Result<Reconciliation, TaxpayerError> {
        let now = self.clock.now();
        if day > day_at(now, self.zone) {
            let message = "The day field must not be in the future.";
            return Err(TaxpayerError::Refused(
                Fault::new("day", "not_in_future", message).into(),
            ));
        }
        let known = taxpayers::find_by_id(self.store.reader(), taxpayer)
            .await
            .map_err(TaxpayerError::Store)?;
        known.ok_or(TaxpayerError::Refused(Refusal::TaxpayerNotFound))?;
        let by = if operator.is_some() {
            AskedBy::Operator
        } else {
            AskedBy::CommandLine
        };
        let reconciliation = Reconciliation::new(clock::new_id(), taxpayer, day, by, now);
        self.save(&reconciliation, operator)
            .await
            .map_err(TaxpayerError::Store)?;
        self.requested.notify_one();
        Ok(reconciliation)
    }

    async fn save(
        &self,
        reconciliation: &Reconciliation,
        operator: Option<OperatorRequest>,
    ) -> Result<(), StoreError> {
        let tx = self.store.begin().await?;
        reconciliations::save(&tx, reconciliation).await?;
        let entry = operator.map(|order| audit_entry(reconciliation, &order));
        audit::append(&tx, entry.as_slice()).await?;
        // This lane has the id of its taxpayer, while the lanes that the timer makes due have none. Claims take lanes
        // from each taxpayer in turn, so a request does not wait for all lanes of the timer.
        let key = reconciliation.taxpayer_id.to_string();
        let taxpayer_id = reconciliation.taxpayer_id.0;
        let lane = QueuedLane {
            key,
            taxpayer_id,
            deadline: 0,
            next_step: None,
        };
        lanes::enqueue(&tx, LaneKind::Reconciliation, &[lane]).await?;
        tx.commit().await
    }

    /// Waits until the reconciliation has ended or was interrupted, but at most for `timeout`. Returns the
    /// reconciliation in its state at that time.
    pub async fn wait_for_end(
        &self,
        reconciliation: &Reconciliation,
        timeout: Duration,
    ) -> Result<Reconciliation, TaxpayerError> {
        if timeout.is_zero() {
            return Ok(reconciliation.clone());
        }
        let deadline = Instant::now() + timeout;
        loop {
            let found = reconciliations::find_by_id(&self.store, reconciliation.id)
                .await
                .map_err(TaxpayerError::Store)?;
            let found = found.unwrap_or_else(|| reconciliation.clone());
            let is_pending =
                found.state.is_open() && found.state != ReconciliationState::Interrupted;
            if !is_pending || Instant::now() >= deadline {
                return Ok(found);
            }
            sleep(POLL_EVERY.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }
}

fn audit_entry(reconciliation: &Reconciliation, order: &OperatorRequest) -> AuditEntry {
    let entry = AuditEntry::for_operator_request(
        order,
        AuditAction::Reconcile,
        &reconciliation.id,
        reconciliation.created_at,
    );
    entry
        .for_taxpayer(reconciliation.taxpayer_id)
        .with_states(None, Some(reconciliation.state.to_string()))
}
