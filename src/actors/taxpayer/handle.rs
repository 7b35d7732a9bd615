//! The handle of the taxpayer actors. It has one method for each command, and each method returns a typed reply.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::actors::supervision::{Registry, SendError};
use crate::actors::taxpayer::acting;
use crate::actors::taxpayer::command::{
    CommandEnvelope, CommandError, CommandReply, Created, Idempotency, IntegrationChange, NewReplay,
    Onboarding, OperatorActionRequest, RenewedToken, Revised, RunProgress, RunRecheck, TaxpayerCommand,
    VerificationResult, WebhookChange,
};
use crate::actors::taxpayer::panic_orders::PanicOrders;
use crate::domain::access::api_key::NewKey;
use crate::domain::events::delivery::Endpoint;
use crate::domain::events::replay::{Replay, ReplayScope};
use crate::domain::integration::Integration;
use crate::domain::invoice::batch::{Batch, Candidate};
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::revision::Revision;
use crate::domain::invoice::{Draft, Invoice};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::{SettableStatus, Subscription};
use crate::domain::kernel::ids::{CommandId, TaxpayerId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::outage::OutageNotice;
use crate::domain::party::{ProfileChange, Taxpayer};
use crate::domain::payment::PaymentUpdate;
use crate::domain::pipeline::{Run, RunRequest};
use crate::domain::supplier_invoice::{SupplierDocument, SupplierInvoice};
use crate::store::accounts::key_leases;
use crate::store::db::connections::Store;
use crate::store::db::error::StoreError;
use crate::webhook::SigningSecret;

/// The reason why a command did not take effect, or why its effect is unknown.
#[derive(Debug, thiserror::Error)]
pub enum TaxpayerError {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Store(StoreError),
    #[error("too many requests for this taxpayer are in progress")]
    Busy { retry_after: Duration },
    #[error("too many requests are in progress")]
    Overloaded { retry_after: Duration },
    #[error("command {command_id} was interrupted: read the invoice before sending it again")]
    Interrupted { command_id: CommandId },
    #[error("command {reference} failed twice and was quarantined")]
    Quarantined { reference: CommandId },
    #[error("a request with this idempotency key was executed before")]
    AlreadyProcessed,
}

impl From<StoreError> for TaxpayerError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

pub(crate) type CommandResult = Result<CommandReply, CommandError>;

/// Sends commands to the taxpayer actors. The actor of a taxpayer starts at the taxpayer's first command.
#[derive(Clone)]
pub struct TaxpayerHandle {
    registry: Arc<Registry<TaxpayerId, CommandEnvelope, CommandResult>>,
    store: Store,
    panic_orders: PanicOrders,
    idempotency: Option<Idempotency>,
}

/// Sends a command and takes the value out of the reply. A reply that does not match `$reply` is an error.
macro_rules! request {
    ($handle:expr, $taxpayer:expr, $command:expr, $reply:pat => $value:expr) => {
        match $handle.send($taxpayer, $command).await? {
            $reply => Ok($value),
            other => Err(TaxpayerError::Store(StoreError::Corrupt {
                table: "replies",
                id: $taxpayer.to_string(),
                reason: format!("unexpected reply {other:?}"),
            })),
        }
    };
}

impl TaxpayerHandle {
    pub(super) fn to(
        registry: Registry<TaxpayerId, CommandEnvelope, CommandResult>,
        store: Store,
        panic_orders: PanicOrders,
    ) -> Self {
        Self { registry: Arc::new(registry), store, panic_orders, idempotency: None }
    }

    pub fn registry(&self) -> &Registry<TaxpayerId, CommandEnvelope, CommandResult> {
        &self.registry
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns a handle that sends the idempotency key with its command. Send only one command through it.
    #[must_use]
    pub fn with_idempotency(&self, idempotency: Option<Idempotency>) -> Self {
        Self { idempotency, ..self.clone() }
    }

    pub fn panic_orders(&self) -> &PanicOrders {
        &self.panic_orders
    }

    /// Adds a taxpayer with the reserved `id`.
    pub async fn onboard(&self, id: TaxpayerId, onboarding: Onboarding) -> Result<Taxpayer, TaxpayerError> {
        request!(self, id, TaxpayerCommand::Onboard(Box::new(onboarding)), CommandReply::Taxpayer(taxpayer) => *taxpayer)
    }

    pub async fn create(&self, id: TaxpayerId, draft: Draft) -> Result<Created, TaxpayerError> {
        request!(self, id, TaxpayerCommand::Create(Box::new(draft)), CommandReply::Created(created) => *created)
    }

    /// Replaces the customer, the lines and the details of an invoice.
    pub async fn revise(
        &self,
        id: TaxpayerId,
        invoice: InvoiceRef,
        revision: Revision,
    ) -> Result<Revised, TaxpayerError> {
        let command = TaxpayerCommand::Revise { invoice, revision: Box::new(revision) };
        request!(self, id, command, CommandReply::Revised(revised) => *revised)
    }

    /// Creates a batch of invoices. If one invoice of the batch is refused, the others are still created.
    pub async fn create_batch(
        &self,
        id: TaxpayerId,
        candidates: Vec<Candidate>,
    ) -> Result<Batch, TaxpayerError> {
        request!(self, id, TaxpayerCommand::CreateBatch(candidates), CommandReply::Batch(batch) => *batch)
    }

    pub async fn set_status(
        &self,
        id: TaxpayerId,
        invoice: InvoiceRef,
        status: SettableStatus,
        remark: String,
    ) -> Result<Invoice, TaxpayerError> {
        request!(self, id, TaxpayerCommand::SetStatus { invoice, status, remark }, CommandReply::Invoice(invoice) => *invoice)
    }

    pub async fn pay(&self, id: TaxpayerId, update: PaymentUpdate) -> Result<Invoice, TaxpayerError> {
        request!(self, id, TaxpayerCommand::Pay(update), CommandReply::Invoice(invoice) => *invoice)
    }

    /// Opens a run of the pipeline, or joins the run that the invoice already has for this operation.
    pub async fn open_run(&self, id: TaxpayerId, request: RunRequest) -> Result<Run, TaxpayerError> {
        request!(self, id, TaxpayerCommand::OpenRun(Box::new(request)), CommandReply::Run(run) => *run)
    }

    /// Records the steps that the holder of a run's lane has taken. If the next step has an effect, also records the
    /// intent to call it.
    pub async fn record_steps(&self, id: TaxpayerId, progress: RunProgress) -> Result<Run, TaxpayerError> {
        request!(self, id, TaxpayerCommand::RecordSteps(Box::new(progress)), CommandReply::Run(run) => *run)
    }

    /// Records that the authority has confirmed the receipt of a transmitted invoice.
    pub async fn record_receipt(&self, id: TaxpayerId, irn: Irn) -> Result<(), TaxpayerError> {
        request!(self, id, TaxpayerCommand::RecordReceipt { irn }, CommandReply::Done => ())
    }

    /// Records that an invoice was transmitted. If `is_delivered`, also records that its receipt was confirmed.
    pub async fn record_transit(
        &self,
        id: TaxpayerId,
        irn: Irn,
        is_delivered: bool,
    ) -> Result<(), TaxpayerError> {
        request!(self, id, TaxpayerCommand::RecordTransit { irn, is_delivered }, CommandReply::Done => ())
    }

    /// Adds a supplier's invoice to the inbox, unless the inbox already has it.
    pub async fn receive_supplier_invoice(
        &self,
        id: TaxpayerId,
        document: SupplierDocument,
    ) -> Result<(), TaxpayerError> {
        request!(self, id, TaxpayerCommand::ReceiveSupplierInvoice(Box::new(document)), CommandReply::Done => ())
    }

    /// Records that the authority has our acknowledgement of a supplier's invoice.
    pub async fn acknowledge_supplier_invoice(
        &self,
        id: TaxpayerId,
        irn: Irn,
    ) -> Result<SupplierInvoice, TaxpayerError> {
        let command = TaxpayerCommand::AcknowledgeSupplierInvoice { irn };
        request!(self, id, command, CommandReply::SupplierInvoice(invoice) => *invoice)
    }

    pub async fn change_profile(
        &self,
        id: TaxpayerId,
        change: ProfileChange,
        by: Actor,
    ) -> Result<Taxpayer, TaxpayerError> {
        let command = TaxpayerCommand::ChangeProfile(Box::new(change), by);
        request!(self, id, command, CommandReply::Taxpayer(taxpayer) => *taxpayer)
    }

    pub async fn set_subscription(
        &self,
        id: TaxpayerId,
        to: Subscription,
        by: Actor,
    ) -> Result<Taxpayer, TaxpayerError> {
        request!(self, id, TaxpayerCommand::SetSubscription(to, by), CommandReply::Taxpayer(taxpayer) => *taxpayer)
    }

    pub async fn record_verification(
        &self,
        id: TaxpayerId,
        found: VerificationResult,
    ) -> Result<Taxpayer, TaxpayerError> {
        let command = TaxpayerCommand::RecordVerification(Box::new(found));
        request!(self, id, command, CommandReply::Taxpayer(taxpayer) => *taxpayer)
    }

    /// Sets the URL of the webhook and, if given, the enabled events and the retry schedule.
    pub async fn set_webhook(
        &self,
        id: TaxpayerId,
        change: WebhookChange,
    ) -> Result<Endpoint, TaxpayerError> {
        request!(self, id, TaxpayerCommand::SetWebhook(Box::new(change)), CommandReply::Endpoint(endpoint) => *endpoint)
    }

    pub async fn set_integration(
        &self,
        id: TaxpayerId,
        order: IntegrationChange,
    ) -> Result<Integration, TaxpayerError> {
        let command = TaxpayerCommand::SetIntegration(Box::new(order));
        request!(self, id, command, CommandReply::Integration(integration) => *integration)
    }

    /// Stores the new refresh token in place of the used one.
    pub async fn store_refresh_token(
        &self,
        id: TaxpayerId,
        token: RenewedToken,
    ) -> Result<(), TaxpayerError> {
        request!(self, id, TaxpayerCommand::StoreRefreshToken(Box::new(token)), CommandReply::Done => ())
    }

    pub async fn rotate_secret(
        &self,
        id: TaxpayerId,
        secret: SigningSecret,
        by: Actor,
    ) -> Result<(), TaxpayerError> {
        request!(self, id, TaxpayerCommand::RotateSecret { secret, by }, CommandReply::Done => ())
    }

    /// Gives the taxpayer a new API key. When this returns, no process accepts the keys that it replaces.
    pub async fn rotate_key(&self, id: TaxpayerId, key: NewKey, by: Actor) -> Result<(), TaxpayerError> {
        let rotated: Result<(), TaxpayerError> =
            request!(self, id, TaxpayerCommand::RotateKey { key, by }, CommandReply::Done => ());
        rotated?;
        key_leases::settle(&self.store).await;
        Ok(())
    }

    /// Revokes one API key. When this returns, no process accepts it.
    pub async fn revoke_key(&self, id: TaxpayerId, key: String, by: Actor) -> Result<(), TaxpayerError> {
        let revoked: Result<(), TaxpayerError> =
            request!(self, id, TaxpayerCommand::RevokeKey { id: key, by }, CommandReply::Done => ());
        revoked?;
        key_leases::settle(&self.store).await;
        Ok(())
    }

    pub async fn disable_endpoint(
        &self,
        id: TaxpayerId,
        as_of: Timestamp,
        reason: String,
    ) -> Result<(), TaxpayerError> {
        request!(self, id, TaxpayerCommand::DisableEndpoint { as_of, reason }, CommandReply::Done => ())
    }

    /// Enables the webhook. If `replay` is given, also starts a replay of events.
    pub async fn enable_endpoint(
        &self,
        id: TaxpayerId,
        replay: Option<ReplayScope>,
    ) -> Result<(Endpoint, Option<Replay>), TaxpayerError> {
        let command = TaxpayerCommand::EnableEndpoint { replay };
        request!(self, id, command, CommandReply::Enabled(endpoint, replay) => (*endpoint, replay))
    }

    /// Starts a replay, or returns an open replay that covers the same events.
    pub async fn replay(&self, id: TaxpayerId, order: NewReplay) -> Result<Replay, TaxpayerError> {
        request!(self, id, TaxpayerCommand::Replay(Box::new(order)), CommandReply::Replay(replay) => *replay)
    }

    pub async fn cancel_replay(&self, id: TaxpayerId, replay: uuid::Uuid) -> Result<Replay, TaxpayerError> {
        request!(self, id, TaxpayerCommand::CancelReplay { id: replay }, CommandReply::Replay(replay) => *replay)
    }

    /// Pauses, resumes, retries or cancels a run on behalf of an operator.
    pub async fn apply_operator_action(
        &self,
        id: TaxpayerId,
        order: OperatorActionRequest,
    ) -> Result<Run, TaxpayerError> {
        request!(self, id, TaxpayerCommand::ApplyOperatorAction(Box::new(order)), CommandReply::Run(run) => *run)
    }

    /// Emits the event of an outage, if the webhook has enabled it. The taxpayer gets each such event once.
    pub async fn notify_outage(&self, id: TaxpayerId, notice: OutageNotice) -> Result<(), TaxpayerError> {
        request!(self, id, TaxpayerCommand::NotifyOutage(Box::new(notice)), CommandReply::Done => ())
    }

    /// Makes a stopped run ask the authority for the invoice's state.
    pub async fn recheck_run(&self, id: TaxpayerId, order: RunRecheck) -> Result<Run, TaxpayerError> {
        request!(self, id, TaxpayerCommand::RecheckRun(order), CommandReply::Run(run) => *run)
    }

    /// Makes a quarantined run go on without an operator, once.
    pub async fn lift_run(&self, id: TaxpayerId, order: RunRecheck) -> Result<Run, TaxpayerError> {
        request!(self, id, TaxpayerCommand::LiftRun(order), CommandReply::Run(run) => *run)
    }

    async fn send(&self, id: TaxpayerId, command: TaxpayerCommand) -> Result<CommandReply, TaxpayerError> {
        let acting = acting::current_actor().unwrap_or_else(|| command.own_actor().into());
        let envelope = CommandEnvelope::new(command, self.idempotency.clone(), acting);
        match self.registry.send(&id, envelope).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(CommandError::Refused(refusal))) => Err(TaxpayerError::Refused(refusal)),
            Ok(Err(CommandError::Store(error))) => Err(TaxpayerError::Store(error)),
            Ok(Err(CommandError::AlreadyProcessed)) => Err(TaxpayerError::AlreadyProcessed),
            Err(SendError::Busy { retry_after }) => Err(TaxpayerError::Busy { retry_after }),
            Err(SendError::Overloaded { retry_after }) => Err(TaxpayerError::Overloaded { retry_after }),
            Err(SendError::Interrupted { command_id }) => Err(TaxpayerError::Interrupted { command_id }),
            Err(SendError::Quarantined { reference }) => Err(TaxpayerError::Quarantined { reference }),
            Err(SendError::Stopped) => Err(TaxpayerError::Overloaded { retry_after: Duration::from_secs(1) }),
        }
    }
}
