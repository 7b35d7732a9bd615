//! The way to the taxpayers' actors: one method a command, each with its own reply.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::actors::supervision::{CommandId, Registry, SendError};
use crate::actors::taxpayer::command::{
    Command, Created, FoundOut, IntegrationOrder, NotDone, Onboarding, Once, Order, PaymentUpdate,
    Reconsideration, RenewedToken, ReplayOrder, Reply, Revised, RunOrder, StepOutcome, WebhookChange, Which,
};
use crate::domain::access::api_key::NewKey;
use crate::domain::events::delivery::Endpoint;
use crate::domain::events::replay::{Replay, ReplayScope};
use crate::domain::integration::Integration;
use crate::domain::invoice::batch::{Batch, Candidate};
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::revision::Revision;
use crate::domain::invoice::{Draft, Invoice};
use crate::domain::kernel::audit::Actor;
use crate::domain::kernel::codes::{SettableStatus, Subscription};
use crate::domain::kernel::ids::TaxpayerId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::outage::OutageNotice;
use crate::domain::party::{ProfileChange, Taxpayer};
use crate::domain::pipeline::{Run, RunRequest};
use crate::domain::supplier_invoice::{SupplierDocument, SupplierInvoice};
use crate::store::db::error::StoreError;
use crate::webhook::Secret;

/// Why the books did not change.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Refused(Refusal),
    /// The database is not available: the same may work in a moment.
    #[error(transparent)]
    Store(StoreError),
    #[error("too many requests for this taxpayer are under way")]
    Busy { retry_after: Duration },
    #[error("too many requests are under way")]
    Overloaded { retry_after: Duration },
    #[error("command {command_id} was interrupted: read the invoice before sending it again")]
    Interrupted { command_id: CommandId },
    #[error("command {reference} failed twice and was put aside")]
    Quarantined { reference: CommandId },
    /// A command with the same key was carried out before.
    #[error("a request with this key was carried out before")]
    CarriedOut,
}

pub(crate) type Answer = Result<Reply, NotDone>;

/// Every taxpayer's actor, started when it is first asked.
#[derive(Clone)]
pub struct Taxpayers {
    registry: Arc<Registry<TaxpayerId, Order, Answer>>,
    once: Option<Once>,
}

/// Sends a command and takes the one reply that belongs to it.
macro_rules! ask {
    ($door:expr, $taxpayer:expr, $command:expr, $reply:pat => $value:expr) => {
        match $door.send($taxpayer, $command).await? {
            $reply => Ok($value),
            other => Err(Failure::Store(StoreError::Corrupt {
                table: "replies",
                id: $taxpayer.to_string(),
                reason: format!("unexpected reply {other:?}"),
            })),
        }
    };
}

impl Taxpayers {
    pub(super) fn to(registry: Registry<TaxpayerId, Order, Answer>) -> Self {
        Self { registry: Arc::new(registry), once: None }
    }

    pub fn registry(&self) -> &Registry<TaxpayerId, Order, Answer> {
        &self.registry
    }

    /// The same door for the one command of a request that has a key.
    #[must_use]
    pub fn under(&self, once: Option<Once>) -> Self {
        Self { registry: Arc::clone(&self.registry), once }
    }

    /// Adds a taxpayer under an id that was taken for it.
    pub async fn onboard(&self, id: TaxpayerId, onboarding: Onboarding) -> Result<Taxpayer, Failure> {
        ask!(self, id, Command::Onboard(Box::new(onboarding)), Reply::Taxpayer(taxpayer) => *taxpayer)
    }

    pub async fn create(&self, id: TaxpayerId, draft: Draft) -> Result<Created, Failure> {
        ask!(self, id, Command::Create(Box::new(draft)), Reply::Created(created) => *created)
    }

    /// Replaces customer, lines and details of an invoice.
    pub async fn revise(&self, id: TaxpayerId, which: Which, revision: Revision) -> Result<Revised, Failure> {
        let command = Command::Revise { which, revision: Box::new(revision) };
        ask!(self, id, command, Reply::Revised(revised) => *revised)
    }

    /// Creates invoices together, each judged alone.
    pub async fn create_batch(&self, id: TaxpayerId, candidates: Vec<Candidate>) -> Result<Batch, Failure> {
        ask!(self, id, Command::CreateBatch(candidates), Reply::Batch(batch) => *batch)
    }

    pub async fn set_status(
        &self,
        id: TaxpayerId,
        which: Which,
        status: SettableStatus,
        remark: String,
    ) -> Result<Invoice, Failure> {
        ask!(self, id, Command::SetStatus { which, status, remark }, Reply::Invoice(invoice) => *invoice)
    }

    pub async fn pay(&self, id: TaxpayerId, update: PaymentUpdate) -> Result<Invoice, Failure> {
        ask!(self, id, Command::Pay(update), Reply::Invoice(invoice) => *invoice)
    }

    /// Starts a run of the pipeline, or attaches to the one there is.
    pub async fn open_run(&self, id: TaxpayerId, request: RunRequest) -> Result<Run, Failure> {
        ask!(self, id, Command::OpenRun(Box::new(request)), Reply::Run(run) => *run)
    }

    pub async fn record_step(&self, id: TaxpayerId, outcome: StepOutcome) -> Result<Run, Failure> {
        ask!(self, id, Command::RecordStep(Box::new(outcome)), Reply::Run(run) => *run)
    }

    /// Records that the authority has the receipt of a transmission.
    pub async fn record_receipt(&self, id: TaxpayerId, irn: Irn) -> Result<(), Failure> {
        ask!(self, id, Command::RecordReceipt { irn }, Reply::Done => ())
    }

    /// Records what the authority says of an invoice that was sent: it is on its way, or has arrived.
    pub async fn record_transit(&self, id: TaxpayerId, irn: Irn, is_delivered: bool) -> Result<(), Failure> {
        ask!(self, id, Command::RecordTransit { irn, is_delivered }, Reply::Done => ())
    }

    /// Puts a supplier's invoice into the inbox, once.
    pub async fn receive_supplier_invoice(
        &self,
        id: TaxpayerId,
        document: SupplierDocument,
    ) -> Result<(), Failure> {
        ask!(self, id, Command::ReceiveSupplierInvoice(Box::new(document)), Reply::Done => ())
    }

    /// Records that the authority has the acknowledgement of a supplier's invoice.
    pub async fn acknowledge_supplier_invoice(
        &self,
        id: TaxpayerId,
        irn: Irn,
    ) -> Result<SupplierInvoice, Failure> {
        let command = Command::AcknowledgeSupplierInvoice { irn };
        ask!(self, id, command, Reply::SupplierInvoice(invoice) => *invoice)
    }

    pub async fn change_profile(
        &self,
        id: TaxpayerId,
        change: ProfileChange,
        by: Actor,
    ) -> Result<Taxpayer, Failure> {
        let command = Command::ChangeProfile(Box::new(change), by);
        ask!(self, id, command, Reply::Taxpayer(taxpayer) => *taxpayer)
    }

    pub async fn set_subscription(
        &self,
        id: TaxpayerId,
        to: Subscription,
        by: Actor,
    ) -> Result<Taxpayer, Failure> {
        ask!(self, id, Command::SetSubscription(to, by), Reply::Taxpayer(taxpayer) => *taxpayer)
    }

    /// Records what was found out of who the taxpayer is.
    pub async fn record_verification(&self, id: TaxpayerId, found: FoundOut) -> Result<Taxpayer, Failure> {
        let command = Command::RecordVerification(Box::new(found));
        ask!(self, id, command, Reply::Taxpayer(taxpayer) => *taxpayer)
    }

    /// Sets the URL and, where they are given, the events and the schedule of the webhook.
    pub async fn set_webhook(&self, id: TaxpayerId, change: WebhookChange) -> Result<Endpoint, Failure> {
        ask!(self, id, Command::SetWebhook(Box::new(change)), Reply::Endpoint(endpoint) => *endpoint)
    }

    /// Sets how the ERP takes notifications.
    pub async fn set_integration(
        &self,
        id: TaxpayerId,
        order: IntegrationOrder,
    ) -> Result<Integration, Failure> {
        let command = Command::SetIntegration(Box::new(order));
        ask!(self, id, command, Reply::Integration(integration) => *integration)
    }

    /// Puts a refresh token in the place of the one that was used.
    pub async fn keep_refresh_token(&self, id: TaxpayerId, token: RenewedToken) -> Result<(), Failure> {
        ask!(self, id, Command::KeepRefreshToken(Box::new(token)), Reply::Done => ())
    }

    pub async fn rotate_secret(&self, id: TaxpayerId, secret: Secret, by: Actor) -> Result<(), Failure> {
        ask!(self, id, Command::RotateSecret { secret, by }, Reply::Done => ())
    }

    pub async fn rotate_key(&self, id: TaxpayerId, key: NewKey, by: Actor) -> Result<(), Failure> {
        ask!(self, id, Command::RotateKey { key, by }, Reply::Done => ())
    }

    pub async fn disable_endpoint(
        &self,
        id: TaxpayerId,
        as_of: Timestamp,
        reason: String,
    ) -> Result<(), Failure> {
        ask!(self, id, Command::DisableEndpoint { as_of, reason }, Reply::Done => ())
    }

    /// Puts the webhook back into service, and replays what it did not get.
    pub async fn enable_endpoint(
        &self,
        id: TaxpayerId,
        replay: Option<ReplayScope>,
    ) -> Result<(Endpoint, Option<Replay>), Failure> {
        let command = Command::EnableEndpoint { replay };
        ask!(self, id, command, Reply::Enabled(endpoint, replay) => (*endpoint, replay))
    }

    /// Begins a replay, or joins the one that does the same.
    pub async fn replay(&self, id: TaxpayerId, order: ReplayOrder) -> Result<Replay, Failure> {
        ask!(self, id, Command::Replay(Box::new(order)), Reply::Replay(replay) => *replay)
    }

    /// Ends a replay that is under way.
    pub async fn cancel_replay(&self, id: TaxpayerId, replay: uuid::Uuid) -> Result<Replay, Failure> {
        ask!(self, id, Command::CancelReplay { id: replay }, Reply::Replay(replay) => *replay)
    }

    /// Moves a run as an operator wants it.
    pub async fn move_run(&self, id: TaxpayerId, order: RunOrder) -> Result<Run, Failure> {
        ask!(self, id, Command::MoveRun(Box::new(order)), Reply::Run(run) => *run)
    }

    /// Tells of an outage of the authority, where the enabled events name it and it was not told before.
    pub async fn tell_outage(&self, id: TaxpayerId, notice: OutageNotice) -> Result<(), Failure> {
        ask!(self, id, Command::TellOutage(Box::new(notice)), Reply::Done => ())
    }

    /// Lets a run that stopped short of what the authority has go on and ask.
    pub async fn reconsider(&self, id: TaxpayerId, order: Reconsideration) -> Result<Run, Failure> {
        ask!(self, id, Command::Reconsider(order), Reply::Run(run) => *run)
    }

    async fn send(&self, id: TaxpayerId, command: Command) -> Result<Reply, Failure> {
        let order = Order { command, once: self.once.clone() };
        match self.registry.send(&id, order).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(NotDone::Refused(refusal))) => Err(Failure::Refused(refusal)),
            Ok(Err(NotDone::Store(error))) => Err(Failure::Store(error)),
            Ok(Err(NotDone::CarriedOut)) => Err(Failure::CarriedOut),
            Err(SendError::Busy { retry_after }) => Err(Failure::Busy { retry_after }),
            Err(SendError::Overloaded { retry_after }) => Err(Failure::Overloaded { retry_after }),
            Err(SendError::Interrupted { command_id }) => Err(Failure::Interrupted { command_id }),
            Err(SendError::Quarantined { reference }) => Err(Failure::Quarantined { reference }),
            Err(SendError::Stopped) => Err(Failure::Overloaded { retry_after: Duration::from_secs(1) }),
        }
    }
}
