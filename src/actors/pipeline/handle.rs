//! The handle of the pipeline: starts runs for callers and waits for them. It also relays calls to the authority that
//! need no run.

use std::sync::Arc;
use std::time::Duration;

use authority_client::{Authority, AuthorityFailure, Confirmation, CryptoError};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::actors::on_behalf::authority_for_taxpayer;
use crate::actors::pipeline::queue_position::QueueEstimator;
use crate::actors::run_changes::{RunChanges, RunListener};
use crate::actors::taxpayer::commands::{IfUnchanged, OpenRun};
use crate::actors::taxpayer::handle::{TaxpayerError, TaxpayerHandle};
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::UniqueNoType;
use crate::domain::kernel::ids::{RunId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::payment::RelayedPayment;
use crate::domain::pipeline::{Operation, Run, RunPayload, RunRequest};
use crate::store::Store;
use crate::store::invoices;
use crate::store::runs;

/// A caller that waits for a run also reads the run from the database, because the run may end on another replica:
/// first after `LOOK_AFTER`, then each time after twice as long, up to `LOOK_AFTER_MAX`.
const LOOK_AFTER: Duration = Duration::from_millis(250);
const LOOK_AFTER_MAX: Duration = Duration::from_secs(1);

pub struct PipelineHandle {
    pub taxpayers: Arc<TaxpayerHandle>,
    pub store: Store,
    pub authority: Authority,
    pub run_changes: RunChanges,
    pub backlog: QueueEstimator,
}

/// The authority's answer to the confirmation of a receipt.
#[derive(Debug, Clone)]
pub struct ReceiptConfirmation {
    /// The IRN as the authority spells it.
    pub irn: Irn,
    /// The authority's message if the receipt was confirmed before this call.
    pub already_confirmed: Option<String>,
    pub confirmation: Confirmation,
}

#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    #[error(transparent)]
    Taxpayer(#[from] TaxpayerError),
    #[error(transparent)]
    Authority(#[from] AuthorityFailure),
    #[error(transparent)]
    Unreadable(#[from] CryptoError),
}

impl PipelineHandle {
    /// Starts the run of a request, or joins the existing run. Waits until the caller can get a response
    /// (`may_respond_to_caller`), but at most for `patience`. If this time runs out, returns the run as it is then.
    pub async fn perform_run(
        &self,
        taxpayer: TaxpayerId,
        command: IfUnchanged<OpenRun>,
        patience: Duration,
    ) -> Result<Run, TaxpayerError> {
        let deadline = Instant::now() + patience;
        let run = self.taxpayers.send(taxpayer, command).await?;
        if run.may_respond_to_caller() || Instant::now() >= deadline {
            return Ok(run);
        }
        // A change between the command and this line sends no notification. The first read from the database finds it.
        let changes = self.run_changes.listen_to(run.id);
        self.wait_until_deadline(run, changes, deadline).await
    }

    /// Waits until the caller can get a response about an open run (`may_respond_to_caller`), but not beyond the
    /// deadline.
    pub async fn wait_for_response(
        &self,
        run: Run,
        deadline: Instant,
    ) -> Result<Run, TaxpayerError> {
        if run.may_respond_to_caller() || Instant::now() >= deadline {
            return Ok(run);
        }
        // Listening starts before the read, so that no change between the read and the wait is missed.
        let changes = self.run_changes.listen_to(run.id);
        let now = self.load_run(run.taxpayer_id, run.id).await?;
        if now.digest != run.digest {
            return Err(TaxpayerError::Refused(Refusal::IrnContentChanged));
        }
        self.wait_until_deadline(now, changes, deadline).await
    }

    async fn wait_until_deadline(
        &self,
        run: Run,
        mut changes: RunListener,
        deadline: Instant,
    ) -> Result<Run, TaxpayerError> {
        let taxpayer = run.taxpayer_id;
        let id = run.id;
        let digest = run.digest.clone();
        let mut look_after = LOOK_AFTER;
        let mut run = run;
        while !run.may_respond_to_caller() && Instant::now() < deadline {
            // Frees the memory of the run during the wait, because its document may be large.
            drop(run);
            let next_look = deadline.min(Instant::now() + look_after);
            run = if let Ok(changed) = timeout_at(next_look, changes.next()).await {
                Arc::unwrap_or_clone(changed)
            } else {
                look_after = LOOK_AFTER_MAX.min(look_after * 2);
                self.load_run(taxpayer, id).await?
            };
            if run.digest != digest {
                // Another request has replaced the content under this IRN meanwhile, so the run's outcome would not be
                // the outcome of this request.
                return Err(TaxpayerError::Refused(Refusal::IrnContentChanged));
            }
        }
        Ok(run)
    }

    async fn load_run(&self, taxpayer: TaxpayerId, id: RunId) -> Result<Run, TaxpayerError> {
        let found = runs::find_owned_by_id(self.store.reader(), taxpayer, id).await;
        found
            .map_err(TaxpayerError::Store)?
            .ok_or(TaxpayerError::Refused(Refusal::RunNotFound))
    }

    /// Asks the authority for the state of an invoice.
    pub async fn fetch_confirmation(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
    ) -> Result<Confirmation, RelayError> {
        let irn = self.canonical_irn(taxpayer, irn).await?;
        Ok(self
            .authority_for(taxpayer)
            .await?
            .confirm(irn.as_str())
            .await?)
    }

    /// Downloads the authority's copy of a signed invoice and returns the decrypted document.
    pub async fn download_invoice(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
    ) -> Result<Value, RelayError> {
        let irn = self.canonical_irn(taxpayer, irn).await?;
        let document = self
            .authority_for(taxpayer)
            .await?
            .download(irn.as_str())
            .await?;
        Ok(self.authority.decrypt(irn.as_str(), &document)?)
    }

    /// Relays a payment status to the authority and stores it, in one run, so that both are done even after a crash.
    /// Fails before the run starts if the authority is unavailable or does not know the invoice.
    pub async fn update_payment(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
        payment: RelayedPayment,
        patience: Duration,
    ) -> Result<Run, RelayError> {
        let irn = self.canonical_irn(taxpayer, irn).await?;
        self.authority_for(taxpayer)
            .await?
            .confirm(irn.as_str())
            .await?;
        let request = RunRequest {
            irn,
            payload: RunPayload::Payment(payment),
        };
        let command = IfUnchanged::without_condition(OpenRun(request));
        Ok(self.perform_run(taxpayer, command, patience).await?)
    }

    async fn authority_for(&self, taxpayer: TaxpayerId) -> Result<Authority, TaxpayerError> {
        authority_for_taxpayer(&self.authority, &self.store, taxpayer)
            .await
            .map_err(TaxpayerError::Store)
    }

    /// Returns the IRN as the authority spells it: as in the submission or, without a submission, as in the stored
    /// invoice or, without either, `irn` itself.
    async fn canonical_irn(&self, taxpayer: TaxpayerId, irn: &Irn) -> Result<Irn, TaxpayerError> {
        let reader = self.store.reader();
        let key = irn.key();
        let runs = runs::find_owned_by_irn_keys(reader, taxpayer, vec![key])
            .await
            .map_err(TaxpayerError::Store)?;
        if let Some(run) = runs
            .into_iter()
            .find(|run| run.operation() == Operation::Submit)
        {
            return Ok(run.irn);
        }
        let kind = UniqueNoType::Irn;
        let stored =
            invoices::find_owned_by_unique_no(&self.store, taxpayer, kind, irn.as_str()).await;
        Ok(stored
            .map_err(TaxpayerError::Store)?
            .map_or_else(|| irn.clone(), |invoice| invoice.irn))
    }

    /// Confirms the receipt of a transmission to the authority. The caller records it afterwards (`RecordReceipt`). May
    /// be repeated after a crash, because the authority accepts repeated confirmations.
    pub async fn confirm_receipt_to_authority(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
    ) -> Result<ReceiptConfirmation, RelayError> {
        let irn = self.canonical_irn(taxpayer, irn).await?;
        let authority = self.authority_for(taxpayer).await?;
        // While the taxpayer is paused the command would be refused, and the caller told that nothing was done.
        self.taxpayers.check_not_paused(taxpayer)?;
        let answer = authority.acknowledge(irn.as_str()).await?;
        let confirmation = authority.confirm(irn.as_str()).await?;
        Ok(ReceiptConfirmation {
            irn,
            already_confirmed: answer.was_already_acknowledged.then_some(answer.message),
            confirmation,
        })
    }

    /// Returns the run of an operation for an IRN. Without an operation, returns the run of Transmit, else the run of
    /// Submit, else the run that was updated last.
    pub async fn find_run(
        &self,
        taxpayer: TaxpayerId,
        irn: &Irn,
        operation: Option<Operation>,
    ) -> Result<Run, TaxpayerError> {
        let found =
            runs::find_owned_by_irn_keys(self.store.reader(), taxpayer, vec![irn.key()]).await;
        let runs = found.map_err(TaxpayerError::Store)?.into_iter();
        let meant = runs.filter(|run| operation.is_none_or(|only| only == run.operation()));
        let latest = meant.max_by_key(|run| {
            let rank = match run.operation() {
                Operation::Transmit => 2,
                Operation::Submit => 1,
                Operation::Report | Operation::Payment => 0,
            };
            (rank, run.updated_at)
        });
        latest.ok_or(TaxpayerError::Refused(Refusal::RunNotFound))
    }
}
