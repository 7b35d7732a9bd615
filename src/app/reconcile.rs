//! The command `reconcile`: requests that one day of a taxpayer's invoices is compared with the authority's ledger, and
//! waits for the result. A running service or this process does the comparison.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use database::page::Page;
use jiff::civil::Date;
use serde_json::{Value, json};
use supervision::{AdmissionLimits, Arbiters, Tree};
use timing::clock::{SharedClock, SystemClock, new_id};
use tokio::time::Instant;

use crate::actors::dispatch::{Dispatcher, DispatcherConfig};
use crate::actors::kinds;
use crate::actors::notifiers::Notifiers;
use crate::actors::reconciliation::{
    Reconciler, ReconciliationHandle, ReconciliationSchedule, blocked_timer_step,
};
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::app::authority_connection;
use crate::app::build_context::{reconciler_schedule, taxpayer_deps};
use crate::app::composition::{self, release_leases};
use crate::app::database::open_beside_service;
use crate::app::error::StartError;
use crate::config::Settings;
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::reconciliation::day::{Reconciliation, ReconciliationState, RecordedFinding};
use crate::domain::reference::catalog::SharedCatalog;
use crate::store::Store;
use crate::store::lanes::LaneKind;
use crate::store::operations::reconciliations as reconciliation_rows;

/// The longest wait for a service to begin the comparison, if this process cannot reach the authority.
const START_WAIT_MAX: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// The number of findings read at a time.
const PER_PAGE: u64 = 1_000;

/// The result of a comparison of one day. `Display` writes one line of JSON for each finding and one for the summary.
#[derive(Debug)]
pub struct ReconciliationReport {
    reconciliation: Reconciliation,
    findings: Vec<RecordedFinding>,
}

impl ReconciliationReport {
    /// Returns the number of findings that an operator must decide.
    pub fn findings_to_decide(&self) -> u32 {
        self.reconciliation.counts.listed
    }

    fn summary(&self) -> Value {
        let counts = self.reconciliation.counts;
        json!({
            "reconciliation": self.reconciliation.id,
            "taxpayer_id": self.reconciliation.taxpayer_id,
            "day": self.reconciliation.day,
            "state": self.reconciliation.state,
            "compared": counts.compared,
            "agreed": counts.agreed,
            "under_way": counts.in_progress,
            "mended": counts.repaired,
            "listed": counts.listed,
            "decided": counts.decided,
        })
    }
}

impl fmt::Display for ReconciliationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for recorded in &self.findings {
            let finding = &recorded.finding;
            let decision_reason = recorded
                .decision
                .as_ref()
                .map(|decision| decision.reason.as_str());
            let line = json!({
                "what": finding.kind, "irn": finding.irn, "ours": finding.local, "theirs": finding.remote,
                "action": finding.action, "detail": finding.detail, "decided_because": decision_reason,
            });
            writeln!(f, "{line}")?;
        }
        write!(f, "{}", self.summary())
    }
}

/// Compares one day of a taxpayer with the authority's ledger, and waits for the result.
pub async fn reconcile(
    settings: Settings,
    taxpayer: i64,
    day: Date,
) -> Result<ReconciliationReport, StartError> {
    let clock: SharedClock = Arc::new(SystemClock);
    let authority = authority_connection::remote_client(&settings, &clock)?;
    let store = open_beside_service(&settings).await?;
    let arbiters = Arc::new(Arbiters::start(1));
    let reconciliations = composition::reconciliation_handle(&settings, &store, &clock);
    let owner = new_id().to_string();
    let dispatcher = authority.map(|authority| {
        let tree = Tree::new(clock.clone(), kinds::ALL);
        let notifiers = Notifiers::default();
        let catalog = SharedCatalog::default();
        let taxpayer_deps = taxpayer_deps(&settings, &store, &clock, &notifiers, &catalog);
        let taxpayers =
            TaxpayerHandle::new(taxpayer_deps, &tree, &arbiters, AdmissionLimits::default());
        let schedule = ReconciliationSchedule {
            every: None,
            ..reconciler_schedule(&settings)
        };
        let store = store.clone();
        let taxpayers = Arc::new(taxpayers);
        let reconciler = Reconciler {
            store: store.clone(),
            taxpayers,
            authority,
            clock,
            schedule,
        };
        let config = DispatcherConfig {
            kind: LaneKind::Reconciliation,
            owner: owner.clone(),
            lease: Duration::from_secs(settings.cluster.lease_s),
            concurrency_max: 1,
            claim_max: 1,
            poll: POLL_INTERVAL,
            wake: Arc::clone(&reconciliations.requested),
        };
        // This process skips the timer of the periodic comparisons, because the running service makes them.
        Dispatcher::for_work(store, config, &tree, async move |lease| {
            reconciler.work(lease).await
        })
        .with_blocked_steps(|| vec![blocked_timer_step()])
        .start(&tree, &arbiters, kinds::INBOUND)
    });
    let needs_service = dispatcher.is_none();
    let report = queue_and_await_comparison(
        &store,
        &reconciliations,
        needs_service,
        TaxpayerId(taxpayer),
        day,
    )
    .await;
    arbiters.stop();
    arbiters.join().await;
    let release = release_leases(&store, &owner).await;
    store.close().await;
    let report = report?;
    release?;
    Ok(report)
}

async fn queue_and_await_comparison(
    store: &Store,
    reconciliations: &ReconciliationHandle,
    needs_service: bool,
    taxpayer: TaxpayerId,
    day: Date,
) -> Result<ReconciliationReport, StartError> {
    let queued = reconciliations
        .queue_comparison(taxpayer, day, None)
        .await
        .map_err(|failure| match failure {
            TaxpayerError::Refused(Refusal::TaxpayerNotFound) => StartError::NoTaxpayer(taxpayer.0),
            other => other.into(),
        })?;
    let deadline = Instant::now() + START_WAIT_MAX;
    loop {
        let reconciliation = reconciliations.wait_for_end(&queued, POLL_INTERVAL).await?;
        let error = reconciliation.error.clone().unwrap_or_default();
        match reconciliation.state {
            ReconciliationState::Done => return load_findings(store, reconciliation).await,
            ReconciliationState::Failed => return Err(StartError::NotReconciled(error)),
            ReconciliationState::Interrupted => {
                return Err(StartError::ReconciliationInterrupted(error));
            }
            ReconciliationState::Queued if needs_service && Instant::now() >= deadline => {
                return Err(StartError::NoServiceReconciles);
            }
            ReconciliationState::Queued | ReconciliationState::Running => {}
        }
    }
}

async fn load_findings(
    store: &Store,
    reconciliation: Reconciliation,
) -> Result<ReconciliationReport, StartError> {
    let mut findings = Vec::new();
    for number in 1.. {
        let findings_page = reconciliation_rows::findings(
            store,
            &reconciliation,
            Page {
                number,
                per_page: PER_PAGE,
            },
        )
        .await?;
        if findings_page.is_empty() {
            break;
        }
        findings.extend(findings_page);
    }
    Ok(ReconciliationReport {
        reconciliation,
        findings,
    })
}
