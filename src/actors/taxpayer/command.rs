//! The commands of a taxpayer's actor and its replies. A command has passed every check that needs no stored data; what the
//! stored data forbids is a refusal.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use jiff::Timestamp;

use crate::domain::access::api_key::NewKey;
use crate::domain::access::claim::{IdempotencyClaim, StoredResponse};
use crate::domain::events::delivery::{Endpoint, ScheduleChange};
use crate::domain::events::replay::{Replay, ReplayRange, ReplayScope};
use crate::domain::integration::network::AllowedNetwork;
use crate::domain::integration::origin::Origin;
use crate::domain::integration::{Auth, Format, Integration, SecretText};
use crate::domain::invoice::batch::{Batch, Candidate};
use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::revision::Revision;
use crate::domain::invoice::{Draft, Invoice};
use crate::domain::kernel::audit::{self, Actor};
use crate::domain::kernel::codes::{SettableStatus, Subscription};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{IntegratorId, RunId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::outage::OutageNotice;
use crate::domain::party::verification::Verification;
use crate::domain::party::{ProfileChange, Taxpayer};
use crate::domain::payment::PaymentUpdate;
use crate::domain::pipeline::operator_action::OperatorAction;
use crate::domain::pipeline::{Run, RunRequest, Step, StepResult};
use crate::domain::supplier_invoice::{SupplierDocument, SupplierInvoice};
use crate::store::db::error::StoreError;
use crate::store::lanes::Lease;
use crate::webhook::SigningSecret;

/// A change of one taxpayer's data.
#[derive(Debug)]
pub enum TaxpayerCommand {
    Onboard(Box<Onboarding>),
    Create(Box<Draft>),
    Revise { invoice: InvoiceRef, revision: Box<Revision> },
    CreateBatch(Vec<Candidate>),
    SetStatus { invoice: InvoiceRef, status: SettableStatus, remark: String },
    Pay(PaymentUpdate),
    OpenRun(Box<RunRequest>),
    RecordStep(Box<StepOutcome>),
    RecordReceipt { irn: Irn },
    RecordTransit { irn: Irn, is_delivered: bool },
    ReceiveSupplierInvoice(Box<SupplierDocument>),
    AcknowledgeSupplierInvoice { irn: Irn },
    ChangeProfile(Box<ProfileChange>, Actor),
    SetSubscription(Subscription, Actor),
    RecordVerification(Box<VerificationResult>),
    SetWebhook(Box<WebhookChange>),
    SetIntegration(Box<IntegrationChange>),
    StoreRefreshToken(Box<RenewedToken>),
    RotateSecret { secret: SigningSecret, by: Actor },
    RotateKey { key: NewKey, by: Actor },
    DisableEndpoint { as_of: Timestamp, reason: String },
    EnableEndpoint { replay: Option<ReplayScope> },
    Replay(Box<NewReplay>),
    CancelReplay { id: uuid::Uuid },
    ApplyOperatorAction(Box<OperatorActionRequest>),
    NotifyOutage(Box<OutageNotice>),
    RecheckRun(RunRecheck),
}

impl TaxpayerCommand {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Onboard(_) => "onboard",
            Self::Create(_) => "create",
            Self::Revise { .. } => "revise",
            Self::CreateBatch(_) => "create-batch",
            Self::SetStatus { .. } => "set-status",
            Self::Pay(_) => "pay",
            Self::OpenRun(_) => "open-run",
            Self::RecordStep(_) => "record-step",
            Self::RecordReceipt { .. } => "record-receipt",
            Self::RecordTransit { .. } => "record-transit",
            Self::ReceiveSupplierInvoice(_) => "receive-supplier-invoice",
            Self::AcknowledgeSupplierInvoice { .. } => "acknowledge-supplier-invoice",
            Self::ChangeProfile(..) => "change-profile",
            Self::SetSubscription(..) => "set-subscription",
            Self::RecordVerification(_) => "record-verification",
            Self::SetWebhook(_) => "set-webhook",
            Self::SetIntegration(_) => "set-integration",
            Self::StoreRefreshToken(_) => "store-refresh-token",
            Self::RotateSecret { .. } => "rotate-secret",
            Self::RotateKey { .. } => "rotate-key",
            Self::DisableEndpoint { .. } => "disable-endpoint",
            Self::EnableEndpoint { .. } => "enable-endpoint",
            Self::Replay(_) => "replay",
            Self::CancelReplay { .. } => "cancel-replay",
            Self::ApplyOperatorAction(_) => "apply-operator-action",
            Self::NotifyOutage(_) => "notify-outage",
            Self::RecheckRun(_) => "recheck-run",
        }
    }

    /// The invoices that the command would create.
    pub(crate) fn drafts(&self) -> impl Iterator<Item = &Draft> {
        let (one, many) = match self {
            Self::Create(draft) => (Some(&**draft), &[] as &[Candidate]),
            Self::CreateBatch(candidates) => (None, candidates.as_slice()),
            _ => (None, &[] as &[Candidate]),
        };
        one.into_iter().chain(many.iter().filter_map(|one| one.draft.as_deref().ok()))
    }
}

/// A command as it is sent to the actor.
#[derive(Debug)]
pub struct CommandEnvelope {
    pub command: TaxpayerCommand,
    /// Set if the request has an idempotency key.
    pub idempotency: Option<Idempotency>,
}

impl Deref for CommandEnvelope {
    type Target = TaxpayerCommand;

    fn deref(&self) -> &TaxpayerCommand {
        &self.command
    }
}

/// Renders the HTTP answer of a reply. It is called inside the transaction of the change, which stores the answer.
pub type RenderAnswer = Arc<dyn Fn(&CommandReply) -> Option<StoredResponse> + Send + Sync>;

/// The idempotency key of a command. Of all commands with the same key only the first is executed.
#[derive(Clone)]
pub struct Idempotency {
    pub claim: IdempotencyClaim,
    /// None if the answer holds a secret: it is shown once and not stored.
    pub render: Option<RenderAnswer>,
}

impl fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("claim", &self.claim).finish_non_exhaustive()
    }
}

/// A new taxpayer with its contact person.
#[derive(Debug, Clone)]
pub struct Onboarding {
    pub integrator_id: IntegratorId,
    pub name: String,
    pub email: String,
    pub tin: String,
    pub phone: Option<String>,
    pub nature_of_business: Option<String>,
    pub service_id: String,
    pub business_id: String,
    pub address: String,
    pub contact: NewContact,
    /// Unique values that another taxpayer has already. If there are any, the password was not hashed and the command is
    /// refused.
    pub conflicts: Faults,
}

#[derive(Debug, Clone)]
pub struct NewContact {
    pub first_name: String,
    pub last_name: String,
    pub email: String,
    pub phone: Option<String>,
    /// Argon2id, in the PHC string format.
    pub password_hash: String,
    pub must_change_password: bool,
}

/// The outcome of one step of a run, sent by the holder of the run's lane.
#[derive(Debug, Clone)]
pub struct StepOutcome {
    pub lease: Lease,
    pub run: Run,
    pub step: Step,
    pub attempt_id: uuid::Uuid,
    pub verdict: StepResult,
    pub duration_ms: i64,
}

/// The change of Update Webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookChange {
    pub url: String,
    /// None keeps the stored events.
    pub enabled_events: Option<Vec<String>>,
    pub retry_schedule: ScheduleChange,
    pub by: Actor,
}

/// A verification by the authority or by an operator.
#[derive(Debug, Clone)]
pub struct VerificationResult {
    pub found: Verification,
    /// The operator who decided instead of the authority, with a reason.
    pub by: Option<Actor>,
    pub reason: Option<String>,
}

/// A replay to start.
#[derive(Debug, Clone)]
pub struct NewReplay {
    pub range: ReplayRange,
    /// Set if an operator requests it: the audited order, and the delivery if it is about a single one.
    pub by: Option<(audit::OperatorRequest, Option<uuid::Uuid>)>,
}

/// How the ERP is to receive notifications, set by an operator. A secret that was not sent keeps its stored value.
#[derive(Debug, Clone)]
pub struct IntegrationChange {
    pub erp_system: Option<String>,
    pub auth: Auth<Option<SecretText>>,
    /// The origin that the credentials are for; None means the origin of the webhook's URL.
    pub origin: Option<Origin>,
    pub format: Format,
    pub allowed_networks: Vec<AllowedNetwork>,
    pub by: audit::OperatorRequest,
}

/// A new refresh token and the one that was used to obtain it.
#[derive(Debug, Clone)]
pub struct RenewedToken {
    pub used: SecretText,
    pub given: SecretText,
}

/// An operator's action on a run.
#[derive(Debug, Clone)]
pub struct OperatorActionRequest {
    pub run: RunId,
    pub irn: Irn,
    pub to: OperatorAction,
    pub by: audit::OperatorRequest,
}

/// Makes a stopped run ask the authority, unless it has changed since it was read.
#[derive(Debug, Clone)]
pub struct RunRecheck {
    pub run: RunId,
    pub irn: Irn,
    /// The run's `updated_at` when it was read.
    pub seen: Timestamp,
}

/// The reply to an executed command.
#[derive(Debug)]
pub enum CommandReply {
    Done,
    Taxpayer(Box<Taxpayer>),
    Created(Box<Created>),
    Revised(Box<Revised>),
    Batch(Box<Batch>),
    Invoice(Box<Invoice>),
    Run(Box<Run>),
    Endpoint(Box<Endpoint>),
    Integration(Box<Integration>),
    SupplierInvoice(Box<SupplierInvoice>),
    /// The enabled endpoint, and the replay that was started with it.
    Enabled(Box<Endpoint>, Option<Replay>),
    Replay(Box<Replay>),
}

/// The invoice after a create, which may have existed before.
#[derive(Debug, Clone)]
pub struct Created {
    pub invoice: Invoice,
    pub duplicate: Option<Duplicate>,
}

/// The invoice after an update. `withdrawn` is set if a submission of its older content was cancelled.
#[derive(Debug, Clone)]
pub struct Revised {
    pub invoice: Invoice,
    pub withdrawn: bool,
}

/// How an existing invoice compares with the one that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicate {
    Identical,
    Different,
}

/// Why a command was not executed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A command with the same idempotency key was executed before; its answer is stored.
    #[error("a command with this key was executed before")]
    AlreadyProcessed,
}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Implements the conversion from a reply to the value of one variant.
macro_rules! replies {
    ($($variant:ident => $value:ty;)+) => {$(
        impl<'r> TryFrom<&'r CommandReply> for &'r $value {
            type Error = ();

            fn try_from(reply: &'r CommandReply) -> Result<Self, ()> {
                if let CommandReply::$variant(value) = reply { Ok(value) } else { Err(()) }
            }
        }
    )+};
}

replies! {
    Taxpayer => Taxpayer;
    Created => Created;
    Revised => Revised;
    Batch => Batch;
    Invoice => Invoice;
    Run => Run;
    Endpoint => Endpoint;
}
