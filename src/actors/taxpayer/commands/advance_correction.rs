//! The steps of a correction after its credit note was created. A step is taken only if the stored record is still the
//! one that its sender has read, so that two processes do not take the same step twice.

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::correct::approve_document;
use crate::actors::taxpayer::commands::correction_names::{
    NumberKind, add_identifier_reads, find_free_identifiers,
};
use crate::actors::taxpayer::commands::create::{add_draft_reads, add_invoice, add_wanted_ids};
use crate::actors::taxpayer::commands::payment::mark_fully_credited;
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::CommandSize;
use crate::domain::correction::record::{Correction, CorrectionState, DocumentPurpose};
use crate::domain::invoice::Draft;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::money::Amount;

/// Takes the next step of a correction. Does nothing if the stored correction differs from `seen`, which the sender has
/// read.
pub struct AdvanceCorrection {
    pub seen: Correction,
    pub step: CorrectionStep,
}

pub enum CorrectionStep {
    /// Creates the replacement invoice and approves it.
    Create(Box<Draft>),
    /// Records that the next document was signed, with this payable amount.
    Sign(Amount),
    /// Enters this state, with the reason if the correction stops.
    Enter(CorrectionState, Option<String>),
}

impl AdvanceCorrection {
    fn draft(&self) -> Option<&Draft> {
        match &self.step {
            CorrectionStep::Create(draft) => Some(draft),
            CorrectionStep::Sign(_) | CorrectionStep::Enter(..) => None,
        }
    }
}

impl TaxpayerCommand for AdvanceCorrection {
    type Output = Correction;

    const NAME: &'static str = "advance-correction";

    fn size(&self) -> CommandSize {
        self.draft().map(CommandSize::for_draft).unwrap_or_default()
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        if let Some(draft) = self.draft() {
            add_wanted_ids(draft, wanted);
        }
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        wanted.add_correction(self.seen.original, Vec::new());
        if let Some(draft) = self.draft() {
            add_draft_reads(draft, wanted, context);
            let kind = NumberKind::replacement(draft.invoice_date);
            add_identifier_reads(wanted, context, &self.seen.original_irn, kind);
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Correction, Refusal> {
        let mut known = uow.corrections.iter();
        let known = known.find(|known| known.correction_no == self.seen.correction_no);
        let stored = known.ok_or(Refusal::CorrectionNotFound)?.clone();
        if stored != self.seen {
            return Ok(stored);
        }
        let after = match &self.step {
            CorrectionStep::Create(draft) => create_replacement(uow, stored, draft)?,
            CorrectionStep::Sign(payable) => mark_next_document_signed(uow, stored, *payable),
            CorrectionStep::Enter(state, reason) => {
                stored.enter_state(*state, reason.clone(), uow.now)
            }
        };
        uow.put_correction(after.clone());
        Ok(after)
    }
}

/// Creates and approves the replacement under its planned number or, if that is taken by now, under the next free one.
fn create_replacement(
    uow: &mut UnitOfWork,
    mut correction: Correction,
    draft: &Draft,
) -> Result<Correction, Refusal> {
    let kind = NumberKind::replacement(draft.invoice_date);
    let free = find_free_identifiers(uow, &correction.original_irn, kind)?;
    let draft = Draft {
        invoice_no: free.invoice_no.clone(),
        ..draft.clone()
    };
    let created = add_invoice(uow, &draft)?;
    let id = approve_document(uow, created.invoice)?;
    let mut documents = correction.documents.iter_mut();
    let planned = documents.find(|document| document.kind == DocumentPurpose::Replacement);
    if let Some(planned) = planned {
        planned.invoice_no = free.invoice_no;
        planned.irn = free.irn;
        planned.id = Some(id);
    }
    Ok(correction.enter_state(CorrectionState::Running, None, uow.now))
}

fn mark_next_document_signed(
    uow: &mut UnitOfWork,
    correction: Correction,
    payable: Amount,
) -> Correction {
    let signed = correction.next_document();
    let credit_note = signed
        .filter(|document| document.kind == DocumentPurpose::CreditNote && correction.is_whole);
    let original = uow.invoices.find_by_id(correction.original).cloned();
    if let (Some(credit_note), Some(original)) = (credit_note, original) {
        mark_fully_credited(uow, &original, &credit_note.invoice_no);
    }
    correction.mark_next_signed(payable, uow.now)
}
