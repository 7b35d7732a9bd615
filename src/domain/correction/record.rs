//! A correction in progress: its documents, its state, and the reason if it is stopped.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::domain::correction::amounts::CategoryAmounts;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::words;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;

words! {
    /// The state of a correction. A `Stopped` correction continues by itself once its document is edited or submitted
    /// again.
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
    /// True if the correction may still continue.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Stopped)
    }
}

/// A document of a correction. It has no id until it is created.
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
    /// The number of the correction; empty for a preview, which is not stored.
    pub correction_no: String,
    pub original: InvoiceId,
    pub original_irn: Irn,
    pub state: CorrectionState,
    /// The reason why the correction is stopped or cancelled, and advice.
    pub reason: Option<String>,
    /// The credit note, if there is one, and then the replacement, if there is one.
    pub documents: Vec<PlannedDocument>,
    /// True if the credit note credits all that was left of the invoice.
    pub is_whole: bool,
    pub currency: String,
    /// The payable of the invoice less its credit notes when the correction began.
    pub before: Amount,
    /// The payable that is left after the correction.
    pub after: Amount,
    /// The amount that was received when the correction began: what was paid of the invoice, less the amounts paid of
    /// its credit notes.
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
    pub fn amount_left_to_pay(&self) -> Amount {
        self.after.minus(self.paid).unwrap_or_default()
    }

    /// Returns the correction with the amount that was received by now, for the invoice and for its replacement.
    #[must_use]
    pub fn with_amount_received(self, paid: Amount) -> Self {
        Self { paid, ..self }
    }

    /// Returns the replacement; `None` if the correction has none.
    pub fn replacement(&self) -> Option<&PlannedDocument> {
        let mut documents = self.documents.iter();
        documents.find(|document| document.kind == DocumentPurpose::Replacement)
    }

    /// Returns the id of the replacement; `None` if there is none, or it is not created yet.
    pub fn replacement_id(&self) -> Option<InvoiceId> {
        self.replacement()?.id
    }

    /// Returns the number of the replacement; `None` if there is none, or if it is not created yet.
    pub fn created_replacement_no(&self) -> Option<&str> {
        let created = self.replacement().filter(|document| document.id.is_some());
        created.map(|document| document.invoice_no.as_str())
    }

    /// Returns the replacement if the authority has signed it. The invoice then is replaced for good.
    pub fn signed_replacement(&self) -> Option<&PlannedDocument> {
        self.replacement().filter(|document| document.is_signed)
    }

    /// Marks the next document as signed with this payable, which may differ from the planned one, because a
    /// replacement can be edited before it is signed. If this was the last document of the correction, the correction
    /// is done.
    #[must_use]
    pub fn mark_next_signed(mut self, payable: Amount, now: Timestamp) -> Self {
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
        self.enter_state(state, None, now)
    }

    #[must_use]
    pub fn enter_state(
        self,
        state: CorrectionState,
        reason: Option<String>,
        now: Timestamp,
    ) -> Self {
        Self {
            state,
            reason,
            updated_at: now,
            ..self
        }
    }
}
