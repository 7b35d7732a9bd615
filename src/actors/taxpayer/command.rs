//! What may be asked of a taxpayer's actor, and what it answers. A command has passed every check that
//! needs no books; whatever the books say against it is a refusal in the reply.

use secrecy::SecretString;

use crate::domain::batch::{Batch, Candidate};
use crate::domain::codes::{SettableStatus, Subscription, UniqueNoType};
use crate::domain::delivery::Endpoint;
use crate::domain::ids::IntegratorId;
use crate::domain::invoice::{Draft, Invoice};
use crate::domain::irn::Irn;
use crate::domain::party::{ProfileChange, Taxpayer};
use crate::domain::payment::Notice;
use crate::domain::pipeline::{Request, Run, Step, Verdict};
use crate::domain::refusal::Refusal;
use crate::store::failure::StoreError;
use crate::store::lanes::Lease;

/// One wish about a taxpayer's books.
#[derive(Debug)]
pub enum Command {
    Onboard(Box<Onboarding>),
    Create(Box<Draft>),
    CreateBatch(Vec<Candidate>),
    SetStatus { which: Which, status: SettableStatus, remark: String },
    Pay(PaymentUpdate),
    OpenRun(Box<Request>),
    RecordStep(Box<StepOutcome>),
    RecordReceipt { irn: Irn },
    ChangeProfile(Box<ProfileChange>),
    SetSubscription(Subscription),
    SetWebhook { url: String, enabled_events: Option<Vec<String>> },
    RotateSecret { secret: SecretString },
    RotateKey { key: SecretString },
    DisableEndpoint { reason: String },
}

impl Command {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Onboard(_) => "onboard",
            Self::Create(_) => "create",
            Self::CreateBatch(_) => "create-batch",
            Self::SetStatus { .. } => "set-status",
            Self::Pay(_) => "pay",
            Self::OpenRun(_) => "open-run",
            Self::RecordStep(_) => "record-step",
            Self::RecordReceipt { .. } => "record-receipt",
            Self::ChangeProfile(_) => "change-profile",
            Self::SetSubscription(_) => "set-subscription",
            Self::SetWebhook { .. } => "set-webhook",
            Self::RotateSecret { .. } => "rotate-secret",
            Self::RotateKey { .. } => "rotate-key",
            Self::DisableEndpoint { .. } => "disable-endpoint",
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
    pub notice: Notice,
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
    pub verdict: Verdict,
    pub duration_ms: i64,
}

/// What a command came to.
#[derive(Debug)]
pub enum Reply {
    Done,
    Taxpayer(Box<Taxpayer>),
    Created(Box<Created>),
    Batch(Box<Batch>),
    Invoice(Box<Invoice>),
    Run(Box<Run>),
    Endpoint(Box<Endpoint>),
}

/// The invoice that exists after a create, and whether it did before.
#[derive(Debug, Clone)]
pub struct Created {
    pub invoice: Invoice,
    pub duplicate: Option<Duplicate>,
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
}

impl From<Refusal> for NotDone {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
