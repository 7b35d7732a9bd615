//! A correction of a signed invoice, and the undoing of a batch.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::correction::record::{Correction, CorrectionState, PlannedDocument};
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::money::Amount;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Correction)]
pub(crate) struct CorrectionView<'a> {
    /// The number of the correction; null in a preview, and if nothing has to be done.
    correction_no: Option<&'a str>,
    /// A `stopped` correction continues by itself once the document that stopped it is edited or sent again;
    /// `cancelled` and `done` are final.
    state: CorrectionState,
    /// The reason why the correction is stopped or cancelled, and what to do about it; null otherwise.
    reason: Option<&'a str>,
    /// The invoice that is corrected.
    original_id: InvoiceId,
    original_irn: &'a str,
    currency: &'a str,
    /// The present total of the invoice, less its credit notes.
    before: Amount,
    /// The total after the correction.
    after: Amount,
    /// The amount that has been paid by now for the invoice and for its replacement, less the amounts that were paid
    /// back or set off through credit notes. Payments for the invoice stay recorded on the invoice.
    paid: Amount,
    /// The amount that is still to be paid: `after` less `paid`. If it is below zero, it is to be paid back.
    balance: Amount,
    /// The documents that make the correction, in the order in which they are signed. If nothing has to be done,
    /// a single document of the kind `none`.
    documents: Vec<DocumentView<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CorrectionDocument)]
pub(crate) struct DocumentView<'a> {
    /// `credit_note`, `replacement` or `none`.
    kind: &'static str,
    invoice_no: Option<&'a str>,
    irn: Option<&'a str>,
    payable: Amount,
    /// The id of the document; null until the document is created.
    id: Option<InvoiceId>,
    signed: bool,
}

impl<'a> From<&'a Correction> for CorrectionView<'a> {
    fn from(correction: &'a Correction) -> Self {
        let mut documents: Vec<_> = correction
            .documents
            .iter()
            .map(DocumentView::from)
            .collect();
        if documents.is_empty() {
            documents.push(DocumentView::NONE);
        }
        let number = correction.correction_no.as_str();
        Self {
            correction_no: Some(number).filter(|number| !number.is_empty()),
            state: correction.state,
            reason: correction.reason.as_deref(),
            original_id: correction.original,
            original_irn: correction.original_irn.as_str(),
            currency: &correction.currency,
            before: correction.before,
            after: correction.after,
            paid: correction.paid,
            balance: correction.amount_left_to_pay(),
            documents,
        }
    }
}

impl DocumentView<'_> {
    const NONE: Self = Self {
        kind: "none",
        invoice_no: None,
        irn: None,
        payable: Amount::ZERO,
        id: None,
        signed: false,
    };
}

impl<'a> From<&'a PlannedDocument> for DocumentView<'a> {
    fn from(document: &'a PlannedDocument) -> Self {
        Self {
            kind: document.kind.as_str(),
            invoice_no: Some(&document.invoice_no),
            irn: Some(document.irn.as_str()),
            payable: document.payable,
            id: document.id,
            signed: document.is_signed,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchUndo)]
pub(crate) struct UndoView<'a> {
    pub(crate) batch_no: &'a str,
    /// The number of signed invoices that get a credit note over their whole remaining amount.
    pub(crate) credited: usize,
    /// The number of invoices that were not signed and are cancelled.
    pub(crate) cancelled: usize,
    /// The number of invoices that cannot be undone as they are; each item says why.
    pub(crate) kept: usize,
    /// The number of invoices that were undone before.
    pub(crate) done_before: usize,
    /// The number of invoices that this call leaves as they are, because one call undoes 1,000 at most. A further
    /// call undoes the next ones.
    pub(crate) left: usize,
    /// The sum of the amounts that are credited or cancelled, for each currency.
    pub(crate) money: Vec<MoneyView<'a>>,
    pub(crate) items: Vec<UndoItemView<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UndoneMoney)]
pub(crate) struct MoneyView<'a> {
    pub(crate) currency: &'a str,
    pub(crate) amount: Amount,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UndoneInvoice)]
pub(crate) struct UndoItemView<'a> {
    pub(crate) id: InvoiceId,
    pub(crate) invoice_no: &'a str,
    /// `credit`, `cancel` or `none`.
    pub(crate) act: &'static str,
    pub(crate) currency: &'a str,
    pub(crate) payable: Amount,
    /// The correction with the credit note; null in a preview.
    pub(crate) correction_no: Option<&'a str>,
    /// The reason why nothing is done; else null.
    pub(crate) message: Option<&'a str>,
}
