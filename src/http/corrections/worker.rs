//! Carries out corrections step by step: submits the credit note, waits until it is signed, creates and submits the
//! replacement. Each step is a command or the start of a run. Both have their effect once, however often they are sent,
//! so another process can continue a correction after a crash.

use std::sync::Arc;
use std::time::Duration;

use database::StoreError;
use jiff::Timestamp;
use timing::clock::SharedClock;

use crate::actors::dispatch::{WorkStatus, release_lane};
use crate::actors::taxpayer::commands::{
    AdvanceCorrection, CorrectionStep, IfUnchanged, OpenRun, SeenInvoice,
};
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::correction::next_step::{NextDocument, NextStep, next_step};
use crate::domain::correction::record::{Correction, CorrectionState};
use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::{InvoiceId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::{Operation, Run, RunState};
use crate::domain::reference::catalog::SharedCatalog;
use crate::http::approval::{read_submission, submission_request};
use crate::http::forms::submission::check_irn_length;
use crate::http::respond::error::ApiError;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::Store;
use crate::store::accounts::taxpayers;
use crate::store::invoices;
use crate::store::invoices::corrections::{self, CorrectionKey, StoredCorrection};
use crate::store::lanes::Lease;
use crate::store::operations::audit;
use crate::store::runs;

/// The maximum number of corrections on which a process works concurrently.
pub const CORRECTIONS_MAX: usize = 8;
/// The shortest and the longest wait before the worker looks at a waiting correction again. The wait grows with the
/// time since the correction last changed.
const RECHECK_DELAY_MIN: Duration = Duration::from_millis(500);
const RECHECK_DELAY_MAX: Duration = Duration::from_mins(1);
/// The wait is the time since the correction last changed, divided by this number.
const WAIT_DIVISOR: u32 = 8;
/// The interval at which a correction checks whether its taxpayer is still paused.
const PAUSED_RECHECK_DELAY: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct CorrectionWorker {
    pub store: Store,
    pub taxpayers: Arc<TaxpayerHandle>,
    pub catalog: SharedCatalog,
    pub clock: SharedClock,
    /// The length of the longest IRN that fits into the QR code of a signature; `None` if no QR codes are made.
    pub irn_chars_max: Option<usize>,
}

/// The reason why a step failed.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error(transparent)]
    Command(#[from] TaxpayerError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Document(Box<ApiError>),
}

impl CorrectionWorker {
    /// Takes the next step of the correction that the lane belongs to. Then releases the lane until the following step
    /// is due. While an operator has paused the taxpayer, takes no step.
    pub async fn work(&self, lease: &Lease) -> Result<WorkStatus, StoreError> {
        let Some(key) = CorrectionKey::parse_lane_key(&lease.key) else {
            return release_lane(&self.store, lease, None).await;
        };
        let paused = self.taxpayers.paused_taxpayers();
        if paused.find(key.taxpayer).is_some() {
            return release_lane(&self.store, lease, Some(PAUSED_RECHECK_DELAY)).await;
        }
        let result = corrections::find_owned_by_number(&self.store, key).await;
        let stored = match result {
            Ok(stored) => stored.filter(|stored| stored.correction.state.is_open()),
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(correction = lease.key, %error, "cannot read a correction");
                None
            }
            Err(error) => return Err(error),
        };
        let Some(stored) = stored else {
            return release_lane(&self.store, lease, None).await;
        };
        let seen = stored.correction.clone();
        let after = match self.take_step(key.taxpayer, stored).await {
            Ok(after) => after,
            Err(StepError::Store(error) | StepError::Command(TaxpayerError::Store(error))) => {
                return Err(error);
            }
            Err(StepError::Command(
                TaxpayerError::Busy { .. }
                | TaxpayerError::Overloaded { .. }
                | TaxpayerError::Interrupted { .. },
            )) => return Ok(WorkStatus::Unfinished),
            Err(error) => {
                let correction = &lease.key;
                tracing::warn!(correction, %error, "a step of a correction was refused");
                let reason = Some(error.to_string());
                match self
                    .store_state(key.taxpayer, seen.clone(), CorrectionState::Stopped, reason)
                    .await
                {
                    Ok(after) => after,
                    Err(_) => return Ok(WorkStatus::Unfinished),
                }
            }
        };
        let delay = self.delay_until_next_step(&seen, &after);
        release_lane(&self.store, lease, delay).await
    }

    /// Returns how long the correction waits for its next step; `None` if it has ended.
    fn delay_until_next_step(&self, seen: &Correction, after: &Correction) -> Option<Duration> {
        if !after.state.is_open() {
            return None;
        }
        let has_progressed = after.documents != seen.documents;
        if has_progressed {
            return Some(Duration::ZERO);
        }
        let age = time_since(after.updated_at, self.clock.now());
        Some((age / WAIT_DIVISOR).clamp(RECHECK_DELAY_MIN, RECHECK_DELAY_MAX))
    }

    async fn take_step(
        &self,
        taxpayer: TaxpayerId,
        stored: StoredCorrection,
    ) -> Result<Correction, StepError> {
        let StoredCorrection {
            correction,
            replacement,
        } = stored;
        let Some(next) = correction.next_document().cloned() else {
            let state = CorrectionState::Done;
            return self.store_state(taxpayer, correction, state, None).await;
        };
        let document = match (next.id, replacement) {
            (Some(id), _) => self.find_invoice(taxpayer, id).await?,
            (None, Some(draft)) => {
                let step = CorrectionStep::Create(Box::new(draft));
                return self.store_step(taxpayer, correction, step).await;
            }
            (None, None) => None,
        };
        let Some(document) = document else {
            let reason = format!("The document {} is gone.", next.invoice_no);
            let state = CorrectionState::Stopped;
            return self
                .store_state(taxpayer, correction, state, Some(reason))
                .await;
        };
        let submission = self.find_submission_run(taxpayer, &document).await?;
        let next = NextDocument {
            correction: &correction,
            planned: &next,
            document: &document,
            is_held: self.is_paused_by_operator(submission.as_ref()).await?,
            submission: submission.as_ref(),
        };
        match next_step(next, &self.catalog.get()) {
            NextStep::Sign => {
                let step = CorrectionStep::Sign(document.payment.payable_as_signed());
                self.store_step(taxpayer, correction, step).await
            }
            NextStep::Submit => self.submit(taxpayer, correction, document).await,
            NextStep::Wait => {
                self.store_state(taxpayer, correction, CorrectionState::Running, None)
                    .await
            }
            NextStep::Stop(reason) => {
                self.store_state(taxpayer, correction, CorrectionState::Stopped, Some(reason))
                    .await
            }
            NextStep::Cancel(reason) => {
                let state = CorrectionState::Cancelled;
                self.store_state(taxpayer, correction, state, Some(reason))
                    .await
            }
        }
    }

    async fn find_invoice(
        &self,
        taxpayer: TaxpayerId,
        id: InvoiceId,
    ) -> Result<Option<Invoice>, StoreError> {
        invoices::find_owned_by_id(&self.store, taxpayer, id).await
    }

    async fn find_submission_run(
        &self,
        taxpayer: TaxpayerId,
        document: &Invoice,
    ) -> Result<Option<Run>, StoreError> {
        let keys = vec![document.irn.key()];
        let runs = runs::find_owned_by_irn_keys(self.store.reader(), taxpayer, keys).await?;
        let mut runs = runs.into_iter();
        Ok(runs.find(|run| run.operation() == Operation::Submit))
    }

    async fn is_paused_by_operator(&self, run: Option<&Run>) -> Result<bool, StoreError> {
        let Some(run) = run.filter(|run| run.state() == RunState::Paused) else {
            return Ok(false);
        };
        let reader = self.store.reader();
        let paused = audit::find_runs_paused_by_operator(reader, &[run.id]).await?;
        Ok(paused.contains(&run.id))
    }

    /// Starts the submission of the document. If the document has a fault, stops the correction until somebody edits
    /// the document.
    async fn submit(
        &self,
        taxpayer: TaxpayerId,
        correction: Correction,
        document: Invoice,
    ) -> Result<Correction, StepError> {
        let supplier = taxpayers::find_by_id(self.store.reader(), taxpayer).await?;
        let supplier = supplier.ok_or_else(|| to_step_error(ApiError::taxpayer_not_found()))?;
        let number = document.invoice_no.clone();
        let stored = StoredInvoice::load(&self.store, supplier, document)
            .await
            .map_err(to_step_error)?;
        let read = read_submission(&stored, &self.catalog.get()).map_err(to_step_error)?;
        let read = read.and_then(|form| {
            check_irn_length(&form.value.irn, self.irn_chars_max)?;
            Ok(form)
        });
        let form = match read {
            Ok(form) => form.value,
            Err(faults) => {
                let reason = format!(
                    "The document {number} cannot be submitted: {} Edit it; the correction then goes on by itself.",
                    faults.summary()
                );
                let state = CorrectionState::Stopped;
                return self
                    .store_state(taxpayer, correction, state, Some(reason))
                    .await;
            }
        };
        let command = IfUnchanged {
            seen: Some(SeenInvoice::from(&stored.invoice)),
            command: OpenRun(submission_request(form)),
        };
        match self.taxpayers.send(taxpayer, command).await {
            // Somebody has edited the document meanwhile. The next step submits the edited document.
            Err(TaxpayerError::Refused(Refusal::InvoiceChanged)) => return Ok(correction),
            sent => sent?,
        };
        self.store_state(taxpayer, correction, CorrectionState::Running, None)
            .await
    }

    /// Stores the state of the correction and the reason for it. Does nothing if both are already stored.
    async fn store_state(
        &self,
        taxpayer: TaxpayerId,
        correction: Correction,
        state: CorrectionState,
        reason: Option<String>,
    ) -> Result<Correction, StepError> {
        if correction.state == state && correction.reason == reason {
            return Ok(correction);
        }
        let step = CorrectionStep::Enter(state, reason);
        self.store_step(taxpayer, correction, step).await
    }

    async fn store_step(
        &self,
        taxpayer: TaxpayerId,
        seen: Correction,
        step: CorrectionStep,
    ) -> Result<Correction, StepError> {
        let command = AdvanceCorrection { seen, step };
        Ok(self.taxpayers.send(taxpayer, command).await?)
    }
}

/// A server error becomes a store error, so that the step is retried. Any other error stops the correction.
fn to_step_error(error: ApiError) -> StepError {
    if error.code.status().is_server_error() {
        return StepError::Store(StoreError::NotCommitted);
    }
    StepError::Document(Box::new(error))
}

fn time_since(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}
