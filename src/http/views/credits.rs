//! The credit notes and the corrections of an invoice, and the amount that they leave to pay.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::correction::record::{Correction, CorrectionState};
use crate::domain::invoice::Invoice;
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;
use crate::http::views::correction::DocumentView;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InvoiceCredits)]
pub(crate) struct CreditsView<'a> {
    /// The amount by which the signed credit notes in the currency of the invoice reduce it.
    credited_amount: Amount,
    /// The amount that is left to pay after signed credit notes, payments and refunds. If it is below zero, it is to be
    /// paid back. For a credit note, it is the amount that is left to pay back or to set off.
    left_to_pay: Amount,
    /// The credit notes of the invoice, the signed ones first. One that was cancelled before it was signed is left out.
    credit_notes: Vec<CreditNoteView<'a>>,
    /// The corrections of the invoice, the newest first.
    corrections: Vec<InvoiceCorrectionView<'a>>,
    original: Option<OriginalView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InvoiceCreditNote)]
struct CreditNoteView<'a> {
    id: InvoiceId,
    invoice_no: &'a str,
    irn: &'a str,
    /// A credit note in another currency than that of the invoice reduces nothing.
    currency: &'a str,
    /// The amount of the credit note: that of the signed document, if there is one.
    amount: Amount,
    /// True if the authority has signed the credit note. Only then it reduces the invoice.
    signed: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InvoiceCorrection)]
struct InvoiceCorrectionView<'a> {
    /// The number of the correction, by which its progress is read.
    correction_no: &'a str,
    /// The state of the correction; `cancelled` and `done` are final.
    state: CorrectionState,
    /// The reason why the correction is stopped or cancelled, and what to do about it; null otherwise.
    reason: Option<&'a str>,
    replacement: Option<DocumentView<'a>>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = CorrectedInvoice)]
pub(crate) struct OriginalView {
    /// The id of the corrected invoice; null if it is not stored here.
    pub(crate) id: Option<InvoiceId>,
    /// The IRN of the corrected invoice; null if it is not stored here and the reference is not an IRN.
    pub(crate) irn: Option<String>,
}

impl<'a> CreditsView<'a> {
    pub(crate) fn new(
        invoice: &Invoice,
        credits: &'a InvoiceCredits,
        corrections: &'a [Correction],
        original: Option<OriginalView>,
    ) -> Self {
        let notes = credits.signed.iter().chain(&credits.unsigned);
        Self {
            credited_amount: credits.credited_amount(invoice),
            left_to_pay: credits.left_to_pay(invoice),
            credit_notes: notes.map(CreditNoteView::from).collect(),
            corrections: corrections
                .iter()
                .map(InvoiceCorrectionView::from)
                .collect(),
            original,
        }
    }
}

impl<'a> From<&'a Invoice> for CreditNoteView<'a> {
    fn from(note: &'a Invoice) -> Self {
        Self {
            id: note.id,
            invoice_no: &note.invoice_no,
            irn: note.irn.as_str(),
            currency: &note.currency,
            amount: note.payment.payable_as_signed(),
            signed: note.authority.signed,
        }
    }
}

impl<'a> From<&'a Correction> for InvoiceCorrectionView<'a> {
    fn from(correction: &'a Correction) -> Self {
        Self {
            correction_no: &correction.correction_no,
            state: correction.state,
            reason: correction.reason.as_deref(),
            replacement: correction.replacement().map(DocumentView::from),
        }
    }
}
