//! A correction under way: its documents, how far it has come, and why it is stopped.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::correction::amounts::CategoryAmounts;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;

words! {
    /// How far a correction has come. `Stopped` goes on by itself once its document is edited or sent again.
    CorrectionState {
        Preview = "preview",
        Running = "running",
        Stopped = "stopped",
        Done = "done",
        Cancelled = "cancelled",
    }
}

words! {
    /// The kind of a document of a correction.
    DocumentPurpose { CreditNote = "credit_note", Replacement = "replacement" }
}

impl CorrectionState {
    /// True if the correction goes on, now or later.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Stopped)
    }
}

/// A document of a correction. It is planned until it has an id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedDocument {
    pub kind: DocumentPurpose,
    pub invoice_no: String,
    pub irn: Irn,
    pub payable: Amount,
    /// Base and tax of each tax category.
    pub taxes: BTreeMap<String, CategoryAmounts>,
    pub id: Option<InvoiceId>,
    pub is_signed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// Empty in a preview.
    pub correction_no: String,
    pub original: InvoiceId,
    pub original_irn: Irn,
    pub state: CorrectionState,
    /// Why it is stopped or cancelled, and what to do.
    pub reason: Option<String>,
    /// The credit note and the replacement, as far as there are any, in this order.
    pub documents: Vec<PlannedDocument>,
    /// True if the credit note takes all that was left of the invoice.
    pub is_whole: bool,
    pub currency: String,
    /// What the invoice came to when the correction began, less its credit notes.
    pub before: Amount,
    /// What it comes to after the correction.
    pub after: Amount,
    /// The amount that was paid of the invoice when the correction began, less the amounts paid of its credit notes.
    pub paid: Amount,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Correction {
    /// Returns the document that is to be signed next; `None` if all are.
    pub fn next_document(&self) -> Option<&PlannedDocument> {
        self.documents.iter().find(|document| !document.is_signed)
    }

    /// Returns what is left to pay after the correction; below zero if it has to be paid back.
    pub fn balance(&self) -> Amount {
        self.after.minus(self.paid).unwrap_or_default()
    }

    /// Returns the correction with its next document signed, which comes to this amount: a replacement may have been edited
    /// before. The correction is done if that was the last document.
    #[must_use]
    pub fn sign_next(mut self, payable: Amount, now: Timestamp) -> Self {
        let mut documents = self.documents.iter_mut();
        if let Some(next) = documents.find(|document| !document.is_signed) {
            next.is_signed = true;
            next.payable = payable;
            if next.kind == DocumentPurpose::Replacement {
                self.after = payable;
            }
        }
        let state = match self.next_document() {
            Some(_) => CorrectionState::Running,
            None => CorrectionState::Done,
        };
        self.enter(state, None, now)
    }

    #[must_use]
    pub fn enter(self, state: CorrectionState, reason: Option<String>, now: Timestamp) -> Self {
        Self {
            state,
            reason,
            updated_at: now,
            ..self
        }
    }
}
