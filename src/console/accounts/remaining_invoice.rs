//! A signed invoice as its signed credit notes leave it. The form of a correction starts from it, because a correction
//! says how the invoice should be from now on. Some invoices cannot be corrected because of another document.

use std::iter;

use crate::console::accounts::invoice::find_stored;
use crate::console::accounts::invoice_form::has_form;
use crate::console::accounts::invoice_head::find_credit_notes;
use crate::console::accounts::invoice_new::ExistingDocument;
use crate::console::accounts::navigation::base_path;
use crate::console::session::accounts::AccountSession;
use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::correction::lines::remaining_lines;
use crate::domain::correction::record::Correction;
use crate::domain::correction::signed_invoice::signed_invoice;
use crate::domain::invoice::{Invoice, Line};
use crate::domain::pipeline::{Operation, Run};
use crate::domain::reference::catalog::Catalog;
use crate::http::respond::error::ApiError;
use crate::http::state::ApiState;
use crate::http::stored_invoice::StoredInvoice;
use crate::store::invoices::{correcting_documents, corrections};
use crate::store::runs;

/// The sentence about a credit note that is not signed, before its number.
const UNSIGNED_NOTE: &str =
    "The invoice can be corrected after this credit note is submitted or cancelled:";
/// The sentence about an invoice that was replaced, before the number of its replacement.
const REPLACED: &str = "This invoice was replaced. Correct its replacement:";

/// Says which lines the form of a correction starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormLinesSource {
    /// The lines of the invoice. It has no signed credit note.
    Invoice,
    /// The lines that the signed credit notes leave.
    Remaining,
    /// The lines of the invoice, although it has signed credit notes: they leave nothing of it, or they credit lines
    /// that the invoice does not have.
    NotRemaining,
}

impl FormLinesSource {
    /// Returns the sentence about the credit notes above the form; an empty text if there are none.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Invoice => "",
            Self::Remaining => {
                "This invoice has signed credit notes. The form shows what they leave of it. Change that to what should be left."
            }
            Self::NotRemaining => {
                "This invoice has signed credit notes. The form shows the invoice without them. Change it to what should be left of it in all."
            }
        }
    }
}

/// A signed invoice, with the lines that its form shows.
pub(super) struct RemainingInvoice {
    pub(super) stored: StoredInvoice,
    pub(super) credits: InvoiceCredits,
    pub(super) lines_source: FormLinesSource,
}

impl RemainingInvoice {
    /// Finds the invoice whose id is in the path. An invoice without a form keeps its lines.
    pub(super) async fn find(
        state: &ApiState,
        session: &AccountSession,
        id: &str,
    ) -> Result<Self, ApiError> {
        let mut stored = find_stored(state, session, id).await?;
        let credits = find_credit_notes(state, &stored.invoice).await?;
        let mut lines_source = FormLinesSource::Invoice;
        if has_form(&stored.invoice) && !credits.signed.is_empty() {
            let lines = find_remaining_lines(state, &stored.invoice).await?;
            lines_source = match lines {
                Some(lines) if !lines.is_empty() => {
                    stored.invoice.lines = lines;
                    FormLinesSource::Remaining
                }
                _ => FormLinesSource::NotRemaining,
            };
        }
        Ok(Self {
            stored,
            credits,
            lines_source,
        })
    }

    /// Returns the document for which the invoice cannot be corrected; `None` if it can.
    pub(super) async fn find_obstacle(
        &self,
        state: &ApiState,
        session: &AccountSession,
    ) -> Result<Option<ExistingDocument>, ApiError> {
        if let Some(note) = self.credits.unsigned.first() {
            return Ok(Some(ExistingDocument::new(session, note, UNSIGNED_NOTE)));
        }
        let reader = state.store.reader();
        let ids = [self.stored.invoice.id];
        let corrections =
            corrections::find_owned_by_invoices(reader, session.taxpayer, &ids).await?;
        let mut replacements = corrections
            .iter()
            .filter_map(Correction::signed_replacement);
        Ok(replacements.find_map(|replacement| {
            Some(ExistingDocument {
                sentence: REPLACED,
                address: format!("{}/invoices/{}", base_path(session), replacement.id?),
                number: replacement.invoice_no.clone(),
            })
        }))
    }
}

/// Returns the lines that the signed credit notes leave of the invoice; `None` if they credit lines that it does not
/// have, or if they are too many to look at. The lines that were signed count, also where others are stored.
async fn find_remaining_lines(
    state: &ApiState,
    invoice: &Invoice,
) -> Result<Option<Vec<Line>>, ApiError> {
    let reader = state.store.reader();
    let taxpayer = invoice.taxpayer_id;
    let references = invoice.incoming_reference_texts();
    let loaded =
        correcting_documents::load_correcting_documents(reader, taxpayer, &references).await?;
    let Some(documents) = loaded else {
        return Ok(None);
    };
    let credits = InvoiceCredits::new(invoice, documents);
    let documents = iter::once(invoice).chain(&credits.signed);
    let irn_keys = documents.map(|document| document.irn.key()).collect();
    let runs = runs::find_owned_by_irn_keys(reader, taxpayer, irn_keys).await?;
    let catalog = state.catalog.get();
    let original = lines_as_signed(invoice, &runs, &catalog);
    let notes = credits.signed.iter();
    let credited: Option<Vec<_>> = notes
        .map(|note| lines_as_signed(note, &runs, &catalog))
        .collect();
    let (Some(original), Some(credited)) = (original, credited) else {
        return Ok(None);
    };
    Ok(remaining_lines(&original, credited.iter().flatten()))
}

/// Returns the lines of a document as the authority signed them; `None` if they do not match the stored ones.
fn lines_as_signed(document: &Invoice, runs: &[Run], catalog: &Catalog) -> Option<Vec<Line>> {
    let mut submissions = runs
        .iter()
        .filter(|run| run.operation() == Operation::Submit && run.irn.key() == document.irn.key());
    let submission = submissions.find_map(|run| run.payload.submission());
    let Some(sent) = submission.and_then(|sent| sent.as_json().as_object()) else {
        return Some(document.lines.clone());
    };
    let signed = signed_invoice(document, sent, catalog).ok()?;
    Some(signed.lines)
}
