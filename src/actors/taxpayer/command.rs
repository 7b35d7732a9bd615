//! What may be asked of a taxpayer's actor, and what it answers. A command has passed every check that
//! needs no books; whatever the books say against it is a refusal in the reply.

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
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::revision::Revision;
use crate::domain::invoice::{Draft, Invoice};
use crate::domain::kernel::audit::{self, Actor};
use crate::domain::kernel::codes::{SettableStatus, Subscription, UniqueNoType};
use crate::domain::kernel::fault::Faults;
use crate::domain::kernel::ids::{IntegratorId, RunId};
use crate::domain::kernel::refusal::Refusal;
use crate::domain::outage::OutageNotice;
use crate::domain::party::verification::Verification;
use crate::domain::party::{ProfileChange, Taxpayer};
use crate::domain::payment::PaymentChange;
use crate::domain::pipeline::operator_action::OperatorAction;
use crate::domain::pipeline::{Run, RunRequest, Step, StepResult};
use crate::domain::supplier_invoice::{SupplierDocument, SupplierInvoice};
use crate::store::db::error::StoreError;
use crate::store::lanes::Lease;
use crate::webhook::Secret;

/// One wish about a taxpayer's books.
#[derive(Debug)]
pub enum Command {
    Onboard(Box<Onboarding>),
    Create(Box<Draft>),
    Revise { which: Which, revision: Box<Revision> },
    CreateBatch(Vec<Candidate>),
    SetStatus { which: Which, status: SettableStatus, remark: String },
    Pay(PaymentUpdate),
    OpenRun(Box<RunRequest>),
    RecordStep(Box<StepOutcome>),
    RecordReceipt { irn: Irn },
    RecordTransit { irn: Irn, is_delivered: bool },
    ReceiveSupplierInvoice(Box<SupplierDocument>),
    AcknowledgeSupplierInvoice { irn: Irn },
    ChangeProfile(Box<ProfileChange>, Actor),
    SetSubscription(Subscription, Actor),
    RecordVerification(Box<FoundOut>),
    SetWebhook(Box<WebhookChange>),
    SetIntegration(Box<IntegrationOrder>),
    KeepRefreshToken(Box<RenewedToken>),
    RotateSecret { secret: Secret, by: Actor },
    RotateKey { key: NewKey, by: Actor },
    DisableEndpoint { as_of: Timestamp, reason: String },
    EnableEndpoint { replay: Option<ReplayScope> },
    Replay(Box<ReplayOrder>),
    CancelReplay { id: uuid::Uuid },
    MoveRun(Box<RunOrder>),
    TellOutage(Box<OutageNotice>),
    Reconsider(Reconsideration),
}

impl Command {
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
            Self::KeepRefreshToken(_) => "keep-refresh-token",
            Self::RotateSecret { .. } => "rotate-secret",
            Self::RotateKey { .. } => "rotate-key",
            Self::DisableEndpoint { .. } => "disable-endpoint",
            Self::EnableEndpoint { .. } => "enable-endpoint",
            Self::Replay(_) => "replay",
            Self::CancelReplay { .. } => "cancel-replay",
            Self::MoveRun(_) => "move-run",
            Self::TellOutage(_) => "tell-outage",
            Self::Reconsider(_) => "reconsider",
        }
    }

    /// The invoices it would create.
    pub(crate) fn drafts(&self) -> impl Iterator<Item = &Draft> {
        let (one, many) = match self {
            Self::Create(draft) => (Some(&**draft), &[] as &[Candidate]),
            Self::CreateBatch(candidates) => (None, candidates.as_slice()),
            _ => (None, &[] as &[Candidate]),
        };
        one.into_iter().chain(many.iter().filter_map(|one| one.draft.as_deref().ok()))
    }
}

/// A command as it is sent.
#[derive(Debug)]
pub struct Order {
    pub command: Command,
    /// What it is carried out once under, where its request has a key.
    pub once: Option<Once>,
}

impl Deref for Order {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.command
    }
}

/// How a reply is told to who asked. It is called in the transaction of the change, which keeps the answer.
pub type Tell = Arc<dyn Fn(&Reply) -> Option<StoredResponse> + Send + Sync>;

/// What makes one command of all those with the same key: who comes first is carried out.
#[derive(Clone)]
pub struct Once {
    pub claim: IdempotencyClaim,
    /// None where the answer holds a secret, which is shown once and kept nowhere.
    pub tell: Option<Tell>,
}

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("claim", &self.claim).finish_non_exhaustive()
    }
}

/// An invoice by one of its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Which {
    pub kind: UniqueNoType,
    pub text: String,
}

/// What is said about an invoice's payment, and what the ledger keeps beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentUpdate {
    pub which: Which,
    pub notice: PaymentChange,
    pub reference: Option<String>,
    pub remark: String,
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
    /// What was found to be another's already; then there is no hash of a password, and this is refused.
    pub taken: Faults,
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

/// What came of one call of a run, by whoever holds the run's lane.
#[derive(Debug, Clone)]
pub struct StepOutcome {
    pub lease: Lease,
    pub run: Run,
    pub step: Step,
    pub attempt_id: uuid::Uuid,
    pub verdict: StepResult,
    pub duration_ms: i64,
}

/// What Update Webhook says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookChange {
    pub url: String,
    /// None leaves them as they are.
    pub enabled_events: Option<Vec<String>>,
    pub retry_schedule: ScheduleChange,
    pub by: Actor,
}

/// What the authority or an operator says of who a taxpayer is.
#[derive(Debug, Clone)]
pub struct FoundOut {
    pub found: Verification,
    /// Who said it in the authority's place, and why.
    pub by: Option<Actor>,
    pub reason: Option<String>,
}

/// A replay that is wanted; where an operator wants it, why, and of which delivery if it is of one.
#[derive(Debug, Clone)]
pub struct ReplayOrder {
    pub range: ReplayRange,
    pub by: Option<(audit::OperatorRequest, Option<uuid::Uuid>)>,
}

/// How an operator wants the ERP to take notifications. A secret that was not sent is the stored one.
#[derive(Debug, Clone)]
pub struct IntegrationOrder {
    pub erp_system: Option<String>,
    pub auth: Auth<Option<SecretText>>,
    /// The origin that the credentials are for; that of the webhook's URL where none is named.
    pub origin: Option<Origin>,
    pub format: Format,
    pub allowed_networks: Vec<AllowedNetwork>,
    pub by: audit::OperatorRequest,
}

/// A refresh token that takes the place of the one that was used.
#[derive(Debug, Clone)]
pub struct RenewedToken {
    pub used: SecretText,
    pub given: SecretText,
}

/// A move of a run that an operator wants.
#[derive(Debug, Clone)]
pub struct RunOrder {
    pub run: RunId,
    pub irn: Irn,
    pub to: OperatorAction,
    pub by: audit::OperatorRequest,
}

/// A run that is to ask the authority, unless it has moved since a moment.
#[derive(Debug, Clone)]
pub struct Reconsideration {
    pub run: RunId,
    pub irn: Irn,
    /// Its last change when it was looked at.
    pub seen: Timestamp,
}

/// What a command came to.
#[derive(Debug)]
pub enum Reply {
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
    /// An endpoint that is back in service, and what is replayed to it.
    Enabled(Box<Endpoint>, Option<Replay>),
    Replay(Box<Replay>),
}

/// The invoice that exists after a create, and whether it did before.
#[derive(Debug, Clone)]
pub struct Created {
    pub invoice: Invoice,
    pub duplicate: Option<Duplicate>,
}

/// The invoice after an update, and whether a submission of what it was before was called off.
#[derive(Debug, Clone)]
pub struct Revised {
    pub invoice: Invoice,
    pub withdrawn: bool,
}

/// How the invoice that existed before compares with the one that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicate {
    Identical,
    Different,
}

/// Why a command was not carried out.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotDone {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A command with the same key was carried out before; its answer is kept.
    #[error("a command with this key was carried out before")]
    CarriedOut,
}

impl From<Refusal> for NotDone {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Declares which reply holds which value.
macro_rules! replies {
    ($($reply:ident => $value:ty;)+) => {$(
        impl<'r> TryFrom<&'r Reply> for &'r $value {
            type Error = ();

            fn try_from(reply: &'r Reply) -> Result<Self, ()> {
                if let Reply::$reply(value) = reply { Ok(value) } else { Err(()) }
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
