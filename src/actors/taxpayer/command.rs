//! The commands of a taxpayer actor and the replies to them. All checks that need no stored data are made before a
//! command is sent. If the stored data forbids the command, the reply is a refusal.

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
use crate::domain::kernel::audit::{self, Acting, Actor};
use crate::domain::kernel::codes::{SettableStatus, Subscription};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{IntegratorId, RunId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::outage::OutageNotice;
use crate::domain::party::verification::Verification;
use crate::domain::party::{ProfileChange, Taxpayer};
use crate::domain::payment::PaymentUpdate;
use crate::domain::pipeline::operator_action::OperatorAction;
use crate::domain::pipeline::{Run, RunRequest, Step, StepRecord, StepResult};
use crate::domain::supplier_invoice::{SupplierDocument, SupplierInvoice};
use crate::store::db::error::StoreError;
use crate::store::lanes::Lease;
use crate::webhook::SigningSecret;

/// A command that changes the data of one taxpayer.
#[derive(Debug)]
pub enum TaxpayerCommand {
    Onboard(Box<Onboarding>),
    Create(Box<Draft>),
    Revise { invoice: InvoiceRef, revision: Box<Revision> },
    CreateBatch(Vec<Candidate>),
    SetStatus { invoice: InvoiceRef, status: SettableStatus, remark: String },
    Pay(PaymentUpdate),
    OpenRun(Box<RunRequest>),
    RecordSteps(Box<RunProgress>),
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
    RevokeKey { id: String, by: Actor },
    DisableEndpoint { as_of: Timestamp, reason: String },
    EnableEndpoint { replay: Option<ReplayScope> },
    Replay(Box<NewReplay>),
    CancelReplay { id: uuid::Uuid },
    ApplyOperatorAction(Box<OperatorActionRequest>),
    NotifyOutage(Box<OutageNotice>),
    RecheckRun(RunRecheck),
    LiftRun(RunRecheck),
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
            Self::RecordSteps(_) => "record-steps",
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
            Self::RevokeKey { .. } => "revoke-key",
            Self::DisableEndpoint { .. } => "disable-endpoint",
            Self::EnableEndpoint { .. } => "enable-endpoint",
            Self::Replay(_) => "replay",
            Self::CancelReplay { .. } => "cancel-replay",
            Self::ApplyOperatorAction(_) => "apply-operator-action",
            Self::NotifyOutage(_) => "notify-outage",
            Self::RecheckRun(_) => "recheck-run",
            Self::LiftRun(_) => "lift-run",
        }
    }

    /// Returns who acts if no request names an actor.
    pub(crate) fn own_actor(&self) -> Actor {
        match self {
            Self::ChangeProfile(_, by)
            | Self::SetSubscription(_, by)
            | Self::RotateSecret { by, .. }
            | Self::RotateKey { by, .. }
            | Self::RevokeKey { by, .. } => *by,
            Self::SetWebhook(change) => change.by,
            Self::SetIntegration(change) => change.by,
            Self::ApplyOperatorAction(action) => Actor::Operator(action.by.operator_id),
            Self::RecordVerification(result) => result.by.unwrap_or(Actor::Authority),
            Self::RecordSteps(_)
            | Self::RecordReceipt { .. }
            | Self::RecordTransit { .. }
            | Self::ReceiveSupplierInvoice(_)
            | Self::NotifyOutage(_) => Actor::Authority,
            _ => Actor::Service,
        }
    }

    /// Returns the drafts of all invoices that this command would create.
    pub(crate) fn drafts(&self) -> impl Iterator<Item = &Draft> {
        let (one, many) = match self {
            Self::Create(draft) => (Some(&**draft), &[] as &[Candidate]),
            Self::CreateBatch(candidates) => (None, candidates.as_slice()),
            _ => (None, &[] as &[Candidate]),
        };
        one.into_iter().chain(many.iter().filter_map(|one| one.draft.as_deref().ok()))
    }
}

/// A command with its idempotency key, as the actor receives it.
#[derive(Debug)]
pub struct CommandEnvelope {
    pub command: TaxpayerCommand,
    /// `None` if the request has no idempotency key.
    pub idempotency: Option<Idempotency>,
    /// The sender of the command.
    pub acting: Acting,
    /// About how many lines the command reads and writes.
    pub(super) weight: usize,
}

impl CommandEnvelope {
    pub(super) fn new(command: TaxpayerCommand, idempotency: Option<Idempotency>, acting: Acting) -> Self {
        let weight = command.weight();
        Self { command, idempotency, acting, weight }
    }
}

impl Deref for CommandEnvelope {
    type Target = TaxpayerCommand;

    fn deref(&self) -> &TaxpayerCommand {
        &self.command
    }
}

/// Renders the HTTP answer for a reply, which is stored in the same transaction as the change.
pub type RenderAnswer = Arc<dyn Fn(&CommandReply) -> Option<StoredResponse> + Send + Sync>;

/// The idempotency key of a command. Of all commands with the same key, only the first is executed.
#[derive(Clone)]
pub struct Idempotency {
    pub claim: IdempotencyClaim,
    /// `None` if the HTTP answer contains a secret: such an answer is shown once and never stored.
    pub render: Option<RenderAnswer>,
}

impl fmt::Debug for Idempotency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotency").field("claim", &self.claim).finish_non_exhaustive()
    }
}

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
    /// One fault for each value that another taxpayer already has. With a fault the command is refused, so the sender
    /// did not compute the slow password hash.
    pub conflicts: Faults,
}

#[derive(Debug, Clone)]
pub struct NewContact {
    pub first_name: String,
    pub last_name: String,
    pub email: String,
    pub phone: Option<String>,
    /// The Argon2id hash of the password, as a PHC string. `None` if the person chooses one with an invitation.
    pub password_hash: Option<String>,
}

/// Holds the steps that the holder of a run's lane has taken since its last record.
#[derive(Debug)]
pub struct RunProgress {
    pub lease: Lease,
    pub run: RunId,
    pub irn: Irn,
    /// The digest of the document with which the steps were called.
    pub digest: String,
    /// The outcomes in order. Only the last one can be other than a success.
    pub steps: Vec<StepOutcome>,
    /// The id of the attempt that the holder makes next, if that step has an effect.
    pub next_attempt: uuid::Uuid,
}

/// The outcome of an attempt at a step.
#[derive(Debug)]
pub struct StepOutcome {
    pub step: Step,
    pub id: uuid::Uuid,
    pub attempt: u32,
    pub started_at: Timestamp,
    pub verdict: StepResult,
    pub duration_ms: i64,
}

impl StepOutcome {
    pub fn record(&self) -> StepRecord {
        StepRecord {
            step: self.step,
            attempt: self.attempt,
            outcome: Some(self.verdict.as_str().to_owned()),
            started_at: self.started_at,
            duration_ms: Some(self.duration_ms),
            error: self.verdict.error().map(str::to_owned),
        }
    }
}

/// The change that the operation Update Webhook makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookChange {
    pub url: String,
    /// `None` keeps the enabled events as they are stored.
    pub enabled_events: Option<Vec<String>>,
    pub retry_schedule: ScheduleChange,
    pub by: Actor,
}

/// The result of a verification, by the authority or by an operator.
#[derive(Debug, Clone)]
pub struct VerificationResult {
    pub found: Verification,
    /// The operator who decided. `None` if the result comes from the authority.
    pub by: Option<Actor>,
    pub reason: Option<String>,
}

#[derive(Debug, Clone)]
pub struct NewReplay {
    pub range: ReplayRange,
    /// Set if an operator requests the replay: the request, for the audit trail, and the delivery if only one is
    /// replayed.
    pub by: Option<(audit::OperatorRequest, Option<uuid::Uuid>)>,
}

/// New settings for how the ERP receives notifications. A secret that is absent keeps its stored value, if the type of
/// authentication and the origin stay the same.
#[derive(Debug, Clone)]
pub struct IntegrationChange {
    pub erp_system: Option<String>,
    pub auth: Auth<Option<SecretText>>,
    /// The origin to which the credentials may be sent. `None` means the origin of the webhook's URL.
    pub origin: Option<Origin>,
    pub format: Format,
    /// `None` keeps the networks. Only an operator may change them.
    pub allowed_networks: Option<Vec<AllowedNetwork>>,
    pub by: Actor,
    pub reason: Option<String>,
}

/// A new refresh token (`given`) and the refresh token that was used to obtain it (`used`).
#[derive(Debug, Clone)]
pub struct RenewedToken {
    pub used: SecretText,
    pub given: SecretText,
}

#[derive(Debug, Clone)]
pub struct OperatorActionRequest {
    pub run: RunId,
    pub irn: Irn,
    pub to: OperatorAction,
    pub by: audit::OperatorRequest,
}

/// A stopped run that is to go on, unless it has changed since `seen`: to ask the authority for the invoice's state, or
/// because its quarantine is lifted.
#[derive(Debug, Clone)]
pub struct RunRecheck {
    pub run: RunId,
    pub irn: Irn,
    /// The `updated_at` of the run when the sender read it.
    pub seen: Timestamp,
}

/// The reply to a command that was executed.
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
    /// The enabled endpoint, and the replay if one was started.
    Enabled(Box<Endpoint>, Option<Replay>),
    Replay(Box<Replay>),
}

/// The result of a create: the new invoice, or the existing one if the invoice is a duplicate.
#[derive(Debug, Clone)]
pub struct Created {
    pub invoice: Invoice,
    pub duplicate: Option<Duplicate>,
}

/// The invoice after an update. `withdrawn` is true if a submission of the previous content was cancelled.
#[derive(Debug, Clone)]
pub struct Revised {
    pub invoice: Invoice,
    pub withdrawn: bool,
}

/// Tells whether an existing invoice has the same content as the draft that the caller sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicate {
    Identical,
    Different,
}

/// The reason why a command was not executed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A command with the same idempotency key was executed before, and its answer is stored.
    #[error("a command with this key was executed before")]
    AlreadyProcessed,
}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Implements, for each variant of `CommandReply`, the conversion of a reply into the variant's value.
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
