//! The way to the pipeline: starts runs and waits for them, and relays the calls that are no runs.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::actors::taxpayer::door::{Failure, Taxpayers};
use crate::actors::waiters::Waiters;
use crate::authority::{Authority, Confirmation, Failure as AuthorityFailure};
use crate::domain::ids::TaxpayerId;
use crate::domain::irn::Irn;
use crate::domain::pipeline::{Operation, Request, Run};
use crate::domain::refusal::Refusal;
use crate::store::database::Store;
use crate::store::runs;

/// How often a waiting caller looks for a run that ended on another replica.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Starts runs, waits for them, relays.
pub struct Pipeline {
    pub taxpayers: Arc<Taxpayers>,
    pub store: Store,
    pub authority: Authority,
    pub waiters: Waiters,
}

/// The authority's answer to a receipt.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// Its own words where the receipt had been confirmed before.
    pub already: Option<String>,
    pub confirmation: Confirmation,
}

/// Why a relayed call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum RelayFailure {
    #[error(transparent)]
    Books(#[from] Failure),
    #[error(transparent)]
    Authority(#[from] AuthorityFailure),
}

impl Pipeline {
    /// Starts or joins a run and waits for its end, for as long as the caller's patience lasts. What comes
    /// back may still be open.
    pub async fn perform(
        &self,
        taxpayer: TaxpayerId,
        request: Request,
        patience: Duration,
    ) -> Result<Run, Failure> {
        let run = self.taxpayers.open_run(taxpayer, request).await?;
        let deadline = Instant::now() + patience;
        let (place, digest) = (self.waiters.join(run.id), run.digest.clone());
        loop {
            // Listening begins before the look, so that no change falls between the two.
            let changed = pin!(place.changed());
            let run = self.read(&run).await?;
            if run.digest != digest {
                // Somebody sent other content for this IRN meanwhile: what it comes to is not ours to tell.
                return Err(Failure::Refused(Refusal::IrnContentChanged));
            }
            if run.is_settled() || Instant::now() >= deadline {
                return Ok(run);
            }
            let next_look = deadline.min(Instant::now() + LOOK_EVERY);
            let _ = timeout_at(next_look, changed).await;
        }
    }

    async fn read(&self, run: &Run) -> Result<Run, Failure> {
        let found = runs::owned_by_with_id(self.store.reader(), run.taxpayer_id, run.id).await;
        found.map_err(Failure::Store)?.ok_or(Failure::Refused(Refusal::RunNotFound))
    }

    /// What the authority knows of an invoice.
    pub async fn confirm(&self, irn: &Irn) -> Result<Confirmation, AuthorityFailure> {
        self.authority.confirm(irn.as_str()).await
    }

    /// Confirms the receipt of a transmission. The authority takes it any number of times.
    pub async fn confirm_receipt(&self, taxpayer: TaxpayerId, irn: &Irn) -> Result<Receipt, RelayFailure> {
        let answer = self.authority.acknowledge(irn.as_str()).await?;
        let confirmation = self.authority.confirm(irn.as_str()).await?;
        self.taxpayers.record_receipt(taxpayer, irn.clone()).await?;
        Ok(Receipt { already: answer.already.then_some(answer.message), confirmation })
    }

    /// The latest run for an IRN: of Transmit where there is one, else of Submit.
    pub async fn run(&self, taxpayer: TaxpayerId, irn: &Irn) -> Result<Run, Failure> {
        let found = runs::owned_by_with_irn_keys(self.store.reader(), taxpayer, vec![irn.key()]).await;
        let runs = found.map_err(Failure::Store)?;
        let latest =
            runs.into_iter().max_by_key(|run| (run.operation == Operation::Transmit, run.updated_at));
        latest.ok_or(Failure::Refused(Refusal::RunNotFound))
    }
}
