//! The states of invoices, payments, runs and deliveries, each with the colour and the words that pages show.

use crate::domain::events::delivery::DeliveryState;
use crate::domain::events::replay::ReplayState;
use crate::domain::import::record::ImportOutcome;
use crate::domain::invoice::batch::{Duplicate, ItemOutcome};
use crate::domain::kernel::codes::{AuthorityStatus, PaymentStatus, Subscription, WorkflowStatus};
use crate::domain::party::verification::VerificationStatus;
use crate::domain::pipeline::RunState;

/// A state as a page shows it. The class gives the colour, and the text says the same in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Badge {
    pub(crate) class: &'static str,
    pub(crate) text: &'static str,
}

pub(crate) const fn badge(class: &'static str, text: &'static str) -> Badge {
    Badge { class, text }
}

/// The words are those of the list of invoices (`lifecycle`).
impl From<WorkflowStatus> for Badge {
    fn from(status: WorkflowStatus) -> Self {
        match status {
            WorkflowStatus::Draft => badge("idle", "Draft"),
            WorkflowStatus::Approved => badge("info", "Approved"),
            WorkflowStatus::Cancelled => badge("idle", "Cancelled"),
            WorkflowStatus::Paid => badge("ok", "Paid"),
            WorkflowStatus::Validated => badge("wait", "Waiting"),
            WorkflowStatus::Submitted => badge("ok", "Signed"),
            WorkflowStatus::Transmitted => badge("ok", "Transmitted"),
            WorkflowStatus::Reported => badge("ok", "Reported"),
        }
    }
}

impl From<PaymentStatus> for Badge {
    fn from(status: PaymentStatus) -> Self {
        match status {
            PaymentStatus::Pending => badge("idle", "Not paid"),
            PaymentStatus::Partial => badge("wait", "Partly paid"),
            PaymentStatus::Paid => badge("ok", "Paid"),
            PaymentStatus::Rejected => badge("bad", "Payment rejected"),
        }
    }
}

impl From<AuthorityStatus> for Badge {
    fn from(status: AuthorityStatus) -> Self {
        match status {
            AuthorityStatus::Pending => badge("idle", "Not submitted"),
            AuthorityStatus::Queued => badge("wait", "Waiting for the authority"),
            AuthorityStatus::Validated => badge("info", "Validated"),
            AuthorityStatus::Submitted => badge("ok", "Signed"),
            AuthorityStatus::Transmitted => badge("ok", "Transmitted"),
            AuthorityStatus::Acknowledged => badge("ok", "Received by the customer"),
            AuthorityStatus::Reported => badge("ok", "Reported"),
            AuthorityStatus::Rejected => badge("bad", "Rejected"),
            AuthorityStatus::Failed => badge("bad", "Stopped"),
        }
    }
}

impl From<RunState> for Badge {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Running => badge("info", "Running"),
            RunState::Waiting => badge("wait", "Waiting"),
            RunState::Paused => badge("warn", "Paused"),
            RunState::Succeeded => badge("ok", "Done"),
            RunState::Refused => badge("bad", "Rejected"),
            RunState::Cancelled => badge("idle", "Cancelled"),
        }
    }
}

impl From<DeliveryState> for Badge {
    fn from(state: DeliveryState) -> Self {
        match state {
            DeliveryState::Pending => badge("wait", "Waiting"),
            DeliveryState::Delivered => badge("ok", "Delivered"),
            DeliveryState::Dead => badge("bad", "Failed"),
        }
    }
}

impl From<ReplayState> for Badge {
    fn from(state: ReplayState) -> Self {
        match state {
            ReplayState::Running => badge("info", "Running"),
            ReplayState::Done => badge("ok", "Done"),
            ReplayState::Cancelled => badge("idle", "Cancelled"),
        }
    }
}

impl From<ItemOutcome> for Badge {
    fn from(outcome: ItemOutcome) -> Self {
        match outcome {
            ItemOutcome::Created => badge("ok", "Created"),
            ItemOutcome::Duplicate => badge("idle", "Duplicate"),
            ItemOutcome::Failed => badge("bad", "Rejected"),
        }
    }
}

impl From<ImportOutcome> for Badge {
    fn from(outcome: ImportOutcome) -> Self {
        match outcome {
            ImportOutcome::Created => badge("ok", "Created"),
            ImportOutcome::Duplicate => badge("idle", "Duplicate"),
            ImportOutcome::Failed => badge("bad", "Rejected"),
            ImportOutcome::NeedsAnswer => badge("wait", "Needs an answer"),
        }
    }
}

/// Returns the badge for an invoice of a batch or a file. A duplicate with other contents gets a warning, because the
/// stored invoice is not the one that was sent. So does a duplicate of a cancelled invoice.
pub fn outcome_badge(
    outcome: impl Into<Badge>,
    duplicate: Option<Duplicate>,
    existing_cancelled: bool,
) -> Badge {
    match duplicate {
        Some(_) if existing_cancelled => badge("wait", "Duplicate, cancelled"),
        Some(Duplicate::Different) => badge("wait", "Duplicate, other contents"),
        _ => outcome.into(),
    }
}

impl From<VerificationStatus> for Badge {
    fn from(status: VerificationStatus) -> Self {
        match status {
            VerificationStatus::Pending => badge("wait", "Being verified"),
            VerificationStatus::Verified => badge("ok", "Verified"),
            VerificationStatus::Unverified => badge("bad", "Not verified"),
        }
    }
}

impl From<Subscription> for Badge {
    fn from(subscription: Subscription) -> Self {
        match subscription {
            Subscription::Active => badge("ok", "Active"),
            Subscription::Inactive => badge("bad", "Inactive"),
        }
    }
}
