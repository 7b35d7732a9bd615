//! `reconcile`: asks for a day to be compared, beside a running service or without one. Whichever process gets the
//! lane does it; this one takes part where the authority can be reached from here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::actors::reconciliation::{Reconciler, Reconciliations, Rhythm, Schedule};
use crate::actors::supervision::{AdmissionLimits, Arbiters, Tree};
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::actors::wake::Wakers;
use crate::app::error::StartError;
use crate::app::house::{desktop, open_patiently, reconciler_schedule, reconciliations};
use crate::app::upstream;
use crate::config::Settings;
use crate::domain::kernel::clock::{SharedClock, SystemClock};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::reconciliation::day::{Finding, Reconciliation, ReconciliationState};
use crate::store::db::connections::Store;
use crate::store::db::page::Page;
use crate::store::operations::reconciliations as rows;

/// How long a service may take to take it up, where this process cannot do it itself.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Findings read at once.
const PAGE: u64 = 1_000;

/// A day that was compared to its end. Shown, it is a line of JSON for each finding, and one for all.
#[derive(Debug)]
pub struct Reconciled {
    one: Reconciliation,
    findings: Vec<Finding>,
}

impl Reconciled {
    /// How many findings are left to an operator.
    pub fn listed(&self) -> u32 {
        self.one.counts.listed
    }

    fn summary(&self) -> Value {
        let counts = self.one.counts;
        json!({
            "reconciliation": self.one.id,
            "taxpayer_id": self.one.taxpayer_id,
            "day": self.one.day,
            "state": self.one.state,
            "compared": counts.compared,
            "agreed": counts.agreed,
            "under_way": counts.under_way,
            "mended": counts.mended,
            "listed": counts.listed,
        })
    }
}

impl fmt::Display for Reconciled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let line = json!({
                "what": finding.kind, "irn": finding.irn, "ours": finding.ours, "theirs": finding.theirs,
                "action": finding.action, "detail": finding.detail,
            });
            writeln!(f, "{line}")?;
        }
        write!(f, "{}", self.summary())
    }
}

/// Compares a day and waits for its end.
pub async fn reconcile(settings: Settings, taxpayer: i64, day: Date) -> Result<Reconciled, StartError> {
    let clock: SharedClock = Arc::new(SystemClock);
    let authority = upstream::remote(&settings, &clock)?;
    let store = open_patiently(&settings).await?;
    let arbiters = Arc::new(Arbiters::start(1));
    let door = reconciliations(&settings, &store, &clock);
    let reconciler = authority.map(|authority| {
        let desktop = desktop(&settings, &store, &clock, &Wakers::default());
        let taxpayers =
            TaxpayerHandle::new(desktop, &Tree::new(clock.clone()), &arbiters, AdmissionLimits::default());
        let schedule = Schedule { rhythm: Rhythm::Guest, ..reconciler_schedule(&settings) };
        Reconciler::new((store.clone(), clock), Arc::new(taxpayers), authority, schedule, Arc::clone(&door))
    });
    let ended = compared(&store, &door, reconciler.as_ref(), (TaxpayerId(taxpayer), day)).await;
    arbiters.stop();
    arbiters.join().await;
    store.close().await;
    ended
}

async fn compared(
    store: &Store,
    door: &Reconciliations,
    reconciler: Option<&Reconciler>,
    (taxpayer, day): (TaxpayerId, Date),
) -> Result<Reconciled, StartError> {
    let asked = door.ask(taxpayer, day, None).await.map_err(|failure| match failure {
        TaxpayerError::Refused(Refusal::TaxpayerNotFound) => StartError::NoTaxpayer(taxpayer.0),
        other => other.into(),
    })?;
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(reconciler) = reconciler {
            reconciler.reconcile_due().await?;
        }
        let one = door.wait(&asked, LOOK_EVERY).await?;
        let error = one.error.clone().unwrap_or_default();
        match one.state {
            ReconciliationState::Done => return with_findings(store, one).await,
            ReconciliationState::Failed => return Err(StartError::NotReconciled(error)),
            ReconciliationState::Interrupted => return Err(StartError::Interrupted(error)),
            ReconciliationState::Queued if reconciler.is_none() && Instant::now() >= deadline => {
                return Err(StartError::NobodyReconciles);
            }
            ReconciliationState::Queued | ReconciliationState::Running => {}
        }
    }
}

async fn with_findings(store: &Store, one: Reconciliation) -> Result<Reconciled, StartError> {
    let mut findings = Vec::new();
    for page in 1.. {
        let part = rows::findings(store, &one, Page { number: page, per_page: PAGE }).await?;
        if part.is_empty() {
            break;
        }
        findings.extend(part);
    }
    Ok(Reconciled { one, findings })
}
