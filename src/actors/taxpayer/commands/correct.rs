//! Corrects a signed invoice: plans the documents, and creates the credit note together with the record of the
//! correction, so that neither is stored without the other. The worker of corrections takes the further steps.

use std::sync::Arc;

use jiff::civil::Date;
use serde_json::json;
use timing::clock;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::correction_names::{
    FreeIdentifiers, NumberKind, add_identifier_reads, find_free_identifiers,
};
use crate::actors::taxpayer::commands::create::{new_invoice, put_new_invoice};
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::CommandSize;
use crate::domain::correction::amounts::Amounts;
use crate::domain::correction::credits::InvoiceCredits;
use crate::domain::correction::plan::{CorrectionCase, CorrectionNumbers, CorrectionWish, Plan};
use crate::domain::correction::record::{
    Correction, CorrectionState, DocumentPurpose, PlannedDocument,
};
use crate::domain::correction::signed_invoice::signed_invoice;
use crate::domain::events::event::EventKind;
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::invoice::stored_document::type_code;
use crate::domain::invoice::{Draft, Invoice, batch};
use crate::domain::kernel::codes::{SettableStatus, WorkflowStatus, is_self_billed};
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::pipeline::Operation;
use crate::domain::reference::catalog::Catalog;
use crate::store::ids::IdKind;
use crate::store::invoices::correcting_documents::{CORRECTING_BYTES_MAX, CORRECTING_MAX};
use crate::store::invoices::corrections::StoredCorrection;

/// The remark of the status change that approves a document of a correction.
const REMARK: &str = "Approved by the correction";

/// The id, the IRN and the references of the invoice to correct, which never change.
#[derive(Debug, Clone)]
pub struct CorrectedInvoiceIdentifiers {
    pub id: InvoiceId,
    pub irn: Irn,
    /// The texts with which other documents may refer to the invoice: its id, its number or its IRN.
    pub references: Vec<String>,
}

impl From<&Invoice> for CorrectedInvoiceIdentifiers {
    fn from(invoice: &Invoice) -> Self {
        Self {
            id: invoice.id,
            irn: invoice.irn.clone(),
            references: invoice.incoming_reference_texts().to_vec(),
        }
    }
}

/// Starts the correction of a signed invoice or, for a preview, only returns its plan. A correction that needs no
/// documents is done at once and is not stored.
pub struct CorrectInvoice {
    pub original: CorrectedInvoiceIdentifiers,
    pub wish: CorrectionWish,
    pub today: Date,
    pub catalog: Arc<Catalog>,
    pub is_preview: bool,
    /// The number of lines of the original, and the size in bytes of the invoices that refer to it, as the sender found
    /// them.
    pub original_lines: usize,
    pub correcting_bytes: usize,
}

/// The numbers and IRNs of the new documents. A correction that only cancels has no replacement: `replacement` then is
/// the same as `credit_note`, and is not used.
struct NewDocumentIdentifiers {
    credit_note: FreeIdentifiers,
    replacement: FreeIdentifiers,
}

/// The planned documents of a correction, with the number and the IRN of each.
struct PlanWithIdentifiers {
    plan: Plan,
    identifiers: NewDocumentIdentifiers,
}

impl CorrectInvoice {
    fn plan(
        &self,
        uow: &UnitOfWork,
        original: &Invoice,
        credit_notes: &[Invoice],
    ) -> Result<PlanWithIdentifiers, Refusal> {
        let credit_note =
            find_free_identifiers(uow, &original.irn, NumberKind::credit_note(self.today))?;
        let replacement = match &self.wish {
            CorrectionWish::Cancel => credit_note.clone(),
            CorrectionWish::Become(wanted) => {
                let kind = NumberKind::replacement(wanted.invoice_date);
                find_free_identifiers(uow, &original.irn, kind)?
            }
        };
        let numbers = CorrectionNumbers {
            credit_note: credit_note.invoice_no.clone(),
            replacement: replacement.invoice_no.clone(),
        };
        let case = CorrectionCase {
            original,
            credit_notes,
            numbers: &numbers,
            today: self.today,
            catalog: &self.catalog,
        };
        let plan = case.plan(&self.wish);
        let plan = plan.map_err(|error| Refusal::NotCorrectable(error.to_string()))?;
        let identifiers = NewDocumentIdentifiers {
            credit_note,
            replacement,
        };
        Ok(PlanWithIdentifiers { plan, identifiers })
    }
}

impl TaxpayerCommand for CorrectInvoice {
    type Output = Correction;

    const NAME: &'static str = "correct-invoice";

    fn size(&self) -> CommandSize {
        let sent = match &self.wish {
            CorrectionWish::Cancel => CommandSize::default(),
            CorrectionWish::Become(wanted) => CommandSize::for_draft(wanted),
        };
        let read = CommandSize {
            lines: self.original_lines,
            bytes: self.correcting_bytes,
        };
        [sent, read].into_iter().sum()
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        wanted.add(IdKind::Invoice, 1);
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        let CorrectedInvoiceIdentifiers {
            id,
            irn,
            references,
        } = &self.original;
        wanted.add_correction(*id, references.clone());
        wanted.add_invoice_with_runs(irn);
        add_identifier_reads(wanted, context, irn, NumberKind::credit_note(self.today));
        if let CorrectionWish::Become(draft) = &self.wish {
            let kind = NumberKind::replacement(draft.invoice_date);
            add_identifier_reads(wanted, context, irn, kind);
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Correction, Refusal> {
        uow.taxpayer()?
            .check_may_create_invoices(uow.verification)?;
        let original = uow.invoices.find_by_id(self.original.id);
        let original = original.ok_or(Refusal::InvoiceNotFound)?.clone();
        check_correctable(&original, &self.catalog)?;
        check_earlier_corrections(uow, original.id)?;
        let credits = known_credits(uow, &original)?;
        let signed = to_signed_invoice(uow, &original, &self.catalog)?;
        let notes = credits.signed.iter();
        let notes = notes.map(|note| to_signed_invoice(uow, note, &self.catalog));
        let notes: Vec<_> = notes.collect::<Result<_, _>>()?;
        let planned = self.plan(uow, &signed, &notes)?;
        let mut correction = describe_correction(uow, &original, &credits, &planned, &self.catalog);
        let PlanWithIdentifiers { plan, identifiers } = planned;
        if self.is_preview || correction.documents.is_empty() {
            return Ok(correction);
        }
        correction.correction_no = draw_correction_number(uow);
        correction.state = CorrectionState::Running;
        if let (Some(draft), Some(document)) = (&plan.credit_note, correction.documents.first_mut())
        {
            document.id = Some(create_credit_note(
                uow,
                &original,
                draft,
                identifiers.credit_note.irn,
            )?);
        }
        uow.start_correction(StoredCorrection {
            correction: correction.clone(),
            replacement: plan.replacement,
        });
        Ok(correction)
    }
}

/// Draws a correction number from the day and random digits, like the number of a batch but with the letter C.
fn draw_correction_number(uow: &UnitOfWork) -> String {
    let number = batch::draw_batch_number(uow.now, &mut clock::system_rng());
    number.replacen('B', "C", 1)
}

fn describe_correction(
    uow: &UnitOfWork,
    original: &Invoice,
    credits: &InvoiceCredits,
    PlanWithIdentifiers { plan, identifiers }: &PlanWithIdentifiers,
    catalog: &Catalog,
) -> Correction {
    let document = |kind, draft: &Option<Draft>, free: &FreeIdentifiers| {
        draft.as_ref().map(|draft| PlannedDocument {
            kind,
            taxes: Breakdown::from_draft(draft, catalog)
                .map(|breakdown| Amounts::from(breakdown).taxes)
                .unwrap_or_default(),
            invoice_no: free.invoice_no.clone(),
            irn: free.irn.clone(),
            payable: draft.payable,
            id: None,
            is_signed: false,
        })
    };
    let documents = [
        document(
            DocumentPurpose::CreditNote,
            &plan.credit_note,
            &identifiers.credit_note,
        ),
        document(
            DocumentPurpose::Replacement,
            &plan.replacement,
            &identifiers.replacement,
        ),
    ];
    let documents: Vec<_> = documents.into_iter().flatten().collect();
    Correction {
        correction_no: String::new(),
        original: original.id,
        original_irn: original.irn.clone(),
        state: if documents.is_empty() {
            CorrectionState::Done
        } else {
            CorrectionState::Preview
        },
        reason: None,
        documents,
        is_whole: plan.is_whole,
        currency: original.currency.clone(),
        before: plan.before.totals.payable_amount,
        after: plan.after.totals.payable_amount,
        paid: credits.amount_received(original),
        created_at: uow.now,
        updated_at: uow.now,
    }
}

/// Returns a signed invoice or credit note with the lines and the amounts that the authority signed. Refuses a document
/// whose stored lines do not match the signed ones.
fn to_signed_invoice(
    uow: &UnitOfWork,
    stored: &Invoice,
    catalog: &Catalog,
) -> Result<Invoice, Refusal> {
    let run = uow.run(Operation::Submit, &stored.irn);
    let document = run.and_then(|run| run.payload.submission());
    let Some(document) = document.and_then(|document| document.as_json().as_object()) else {
        return Ok(stored.clone());
    };
    signed_invoice(stored, document, catalog)
        .map_err(|error| Refusal::NotCorrectable(error.to_string()))
}

fn check_correctable(original: &Invoice, catalog: &Catalog) -> Result<(), Refusal> {
    let refuse = |reason: &str| Err(Refusal::NotCorrectable(reason.to_owned()));
    if !original.authority.signed {
        let reason = match original.status {
            WorkflowStatus::Draft | WorkflowStatus::Approved => {
                "The authority has not signed this invoice: edit it with PUT /v1/tax-payers/invoices/update, or cancel it."
            }
            WorkflowStatus::Cancelled => "This invoice is cancelled: there is nothing to correct.",
            _ => "The authority has not signed this invoice yet. Correct it once it is signed.",
        };
        let is_being_signed = original.status == WorkflowStatus::Validated;
        return if is_being_signed {
            Err(Refusal::NotYetCorrectable(reason.to_owned()))
        } else {
            refuse(reason)
        };
    }
    if original.is_credit_note() {
        return refuse("This is a credit note. Correct the invoice that it refers to.");
    }
    if type_code(original, catalog).is_some_and(|code| is_self_billed(&code)) {
        return refuse(
            "This invoice is self-billed. Create its credit note in the system that made the invoice.",
        );
    }
    Ok(())
}

/// Refuses to correct an invoice that has an open correction, or that an earlier correction has replaced.
fn check_earlier_corrections(uow: &UnitOfWork, original: InvoiceId) -> Result<(), Refusal> {
    for known in uow
        .corrections
        .iter()
        .filter(|known| known.original == original)
    {
        if known.state.is_open() {
            return Err(Refusal::NotYetCorrectable(format!(
                "The correction {} of this invoice is under way. Wait for its end, or cancel the document that it waits for.",
                known.correction_no
            )));
        }
        if let Some(replacement) = known.signed_replacement() {
            return Err(Refusal::NotCorrectable(format!(
                "This invoice was replaced by {}. Correct that one.",
                replacement.invoice_no
            )));
        }
    }
    Ok(())
}

/// Returns the credit notes of an invoice. Refuses to correct the invoice if one of its credit notes may still be
/// signed, because its amounts would then be credited twice.
fn known_credits(uow: &UnitOfWork, original: &Invoice) -> Result<InvoiceCredits, Refusal> {
    let Some(loaded) = uow.correcting.get(&original.id) else {
        return Err(Refusal::NotCorrectable(format!(
            "More than {CORRECTING_MAX} documents refer to this invoice, or more than {} MiB of them. Cancel those that are not signed, or correct it in the system that made them.",
            CORRECTING_BYTES_MAX >> 20
        )));
    };
    let credits = InvoiceCredits::new(original, correcting_documents(uow, loaded, original));
    match credits.unsigned.first() {
        None => Ok(credits),
        Some(note) => Err(Refusal::NotCorrectable(format!(
            "The credit note {} of this invoice is not signed. Submit it or cancel it first.",
            note.invoice_no
        ))),
    }
}

/// Returns the documents that refer to an invoice, with the changes that earlier commands of this batch made: such a
/// command may have created a credit note.
fn correcting_documents(uow: &UnitOfWork, loaded: &[Invoice], original: &Invoice) -> Vec<Invoice> {
    let present = loaded
        .iter()
        .map(|document| uow.invoices.find_by_id(document.id).unwrap_or(document));
    let added = uow.invoices.changed_invoices().filter(|document| {
        let is_loaded = loaded.iter().any(|known| known.id == document.id);
        document.corrects(original) && !is_loaded
    });
    present.chain(added).cloned().collect()
}

/// Creates the credit note and approves it. It has the customer and the items of the original, so nothing is looked up.
fn create_credit_note(
    uow: &mut UnitOfWork,
    original: &Invoice,
    draft: &Draft,
    irn: Irn,
) -> Result<InvoiceId, Refusal> {
    let (note, posting) = new_invoice(uow, draft, irn, original.customer.clone());
    put_new_invoice(uow, &note, posting);
    approve_document(uow, note)
}

/// Approves a new document of a correction, and returns its id.
pub(super) fn approve_document(
    uow: &mut UnitOfWork,
    document: Invoice,
) -> Result<InvoiceId, Refusal> {
    let previous = document.status;
    let approved = Transition::Set(SettableStatus::Approved);
    let approved = document.apply_transition(approved, uow.now)?;
    let extra = json!({ "previous_status": previous, "remark": REMARK });
    uow.emit_about(EventKind::InvoiceStatusUpdated, &approved, extra);
    let id = approved.id;
    uow.put_invoice(approved);
    Ok(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::actors::taxpayer::testing::submitted_invoice;
    use crate::store::testing::sqlite_store;

    #[tokio::test]
    async fn credit_notes_count_as_the_earlier_commands_of_the_batch_left_them() {
        let test = sqlite_store().await;
        let original = submitted_invoice(1, 100, "NGN").mark_signed(None);
        let mut draft = Invoice {
            invoice_type: "380".to_owned(),
            status: WorkflowStatus::Draft,
            ..submitted_invoice(2, 30, "NGN")
        };
        let reference = json!(original.irn.as_str());
        draft
            .extras
            .insert("original_invoice_reference".to_owned(), reference);
        let cancelled = Invoice {
            status: WorkflowStatus::Cancelled,
            ..draft.clone()
        };
        let signed = draft.clone().mark_signed(None);
        let invoice = submitted_invoice(2, 30, "NGN");
        // The note as it was loaded, and as an earlier command left it; then the number of signed credit notes, or none
        // if the correction is refused.
        for (loaded, changed, expected) in [
            (None, None, Some(0)),
            (None, Some(&invoice), Some(0)),
            (None, Some(&draft), None),
            (None, Some(&signed), Some(1)),
            (Some(&draft), None, None),
            (Some(&draft), Some(&draft), None),
            (Some(&draft), Some(&cancelled), Some(0)),
            (Some(&draft), Some(&signed), Some(1)),
            (Some(&signed), Some(&signed), Some(1)),
        ] {
            let mut uow = UnitOfWork::without_rows(&test.store).await;
            let loaded_notes = loaded.cloned().into_iter().collect();
            uow.correcting.insert(original.id, loaded_notes);
            if let Some(changed) = changed {
                uow.put_invoice(changed.clone());
            }
            let credits = known_credits(&uow, &original).ok();
            let count = credits.map(|credits| credits.signed.len());
            assert_eq!(count, expected, "{loaded:?} {changed:?}");
        }
    }
}
