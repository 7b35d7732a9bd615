//! The reasons for refusing a command or a query, worded for the caller (docs/contract.md, "Errors").

use crate::domain::kernel::codes::WorkflowStatus;
use crate::domain::kernel::fault::{Fault, Faults};
use crate::domain::pipeline::{OperatorAction, RunState, Step};

/// A reason for refusing a request. The caller can act on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{}", .0.summary())]
    Invalid(Faults),
    #[error("Invoice not found")]
    InvoiceNotFound,
    #[error("Taxpayer not found")]
    TaxpayerNotFound,
    #[error(
        "No such pipeline run exists for this IRN (`operation` is submit, transmit, report or update-payment-status)"
    )]
    RunNotFound,
    #[error("The subscription of this taxpayer is not active")]
    SubscriptionInactive,
    #[error("The business profile is incomplete: {} missing", .0.join(", "))]
    ProfileIncomplete(Vec<&'static str>),
    #[error(
        "The tax authority has not confirmed this taxpayer: ask the operator of this service to verify it"
    )]
    TaxpayerUnverified,
    #[error("The invoice is {0} and can no longer be changed: {advice}", advice = .0.advice_if_locked())]
    InvoiceLocked(WorkflowStatus),
    #[error("The invoice must be approved before it can be paid; it is {0}")]
    InvoiceNotApproved(WorkflowStatus),
    #[error("An invoice that is {from} cannot {to}")]
    InvalidTransition {
        from: WorkflowStatus,
        to: &'static str,
    },
    #[error("The invoice changed while it was approved: look at it and approve it again")]
    ChangedDuringApproval,
    #[error("The invoice changed while its document was prepared: send the request again")]
    ChangedDuringPreparation,
    #[error("{0}")]
    PaymentExceedsPayable(Fault),
    #[error(
        "This invoice has more than 1,000 signed credit notes, or more than 16 MiB of them, so they are not set off: record what was paid as partial payments"
    )]
    TooManyCreditNotes,
    #[error("{0}")]
    IrnServiceIdMismatch(Fault),
    #[error("The invoice has changed since you read it: read it again and decide anew")]
    InvoiceChanged,
    #[error("The customer has changed since you read it: read it again and decide anew")]
    CustomerChanged,
    #[error("This IRN was already sent with other content")]
    IrnContentChanged,
    #[error(
        "Another payment update of this invoice is under way; send it again once that has ended"
    )]
    PaymentUnderWay,
    #[error(
        "The authority has this invoice as paid and never changes that, so no payment of it can be taken back: credit the invoice instead"
    )]
    PaidAtAuthority,
    #[error(
        "The authority is being told that this invoice is paid; send the request again once that has ended"
    )]
    PaidUnderWay,
    #[error("The invoice has not been signed")]
    InvoiceNotSigned,
    #[error(
        "The invoice has not been signed yet: its submission is under way; send the request again once that has ended"
    )]
    SignatureUnderWay,
    #[error("No webhook is configured for this taxpayer")]
    WebhookNotConfigured,
    #[error("This supplier invoice was not addressed to you")]
    NotAddressedToCaller,
    #[error("The supplier invoice has already been acknowledged")]
    AlreadyAcknowledged,
    #[error("The webhook is disabled: enable it before anything is replayed")]
    WebhookDisabled,
    #[error("Too many replays of this webhook are under way: wait for one of them to end")]
    TooManyReplays,
    #[error("An account has at most {0} valid keys. Revoke one first.")]
    TooManyKeys(usize),
    #[error("Webhook endpoint not found")]
    EndpointNotFound,
    #[error(
        "The default endpoint cannot be deleted: to get nothing there, set its enabled_events to []"
    )]
    DefaultEndpointStays,
    #[error("Replay not found")]
    ReplayNotFound,
    #[error("The replay has ended already")]
    ReplayEnded,
    #[error("Delivery not found")]
    DeliveryNotFound,
    #[error("No command with this reference is in the quarantine")]
    CommandNotFound,
    /// The quarantined command was already replayed or dropped, or its contents are not stored.
    #[error("{0}")]
    CommandNotReplayable(&'static str),
    #[error("A run that is {from} takes no {to}")]
    ActionNotAllowed { from: RunState, to: OperatorAction },
    #[error("What came of the step {step} is not known yet: {}", uncancellable_run_advice(*from))]
    RunUnsettled { from: RunState, step: Step },
    #[error("The authority has taken this invoice already: the run can only go on")]
    RunTookEffect,
    /// The invoice cannot be corrected in its present state. The text says why.
    #[error("{0}")]
    NotCorrectable(String),
    /// The invoice cannot be corrected before its submission or its correction, which is under way, has ended. The text
    /// says which.
    #[error("{0}")]
    NotYetCorrectable(String),
    #[error("Correction not found")]
    CorrectionNotFound,
    #[error("Import not found")]
    ImportNotFound,
    #[error("The import has ended already")]
    ImportEnded,
    /// The batch cannot be undone, because an import still adds invoices to it.
    #[error(
        "The batch is still being imported, by the import {import_no}: {done} of {documents} invoices are done. Undo it when the import has ended, or cancel the import first."
    )]
    BatchBeingImported {
        import_no: String,
        done: usize,
        documents: usize,
    },
}

/// Returns advice for a run that cannot be cancelled, because one of its calls may have taken effect.
fn uncancellable_run_advice(from: RunState) -> &'static str {
    if from == RunState::Paused {
        "resume the run, so that the authority is asked; if nothing came of it, the run can be cancelled then"
    } else {
        "let the run go on until the authority has answered, or pause it"
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Invalid(fault.into())
    }
}

impl From<Faults> for Refusal {
    fn from(faults: Faults) -> Self {
        Self::Invalid(faults)
    }
}
