//! Corrects a signed invoice: plans the documents, and creates the credit note together with the record of the correction,
//! so that neither is there without the other. The worker of corrections does the rest, step by step.

use std::sync::Arc;

use jiff::civil::Date;
use serde_json::json;
use timing::clock;

use crate::actors::taxpayer::command::TaxpayerCommand;
use crate::actors::taxpayer::commands::create::{new_invoice, store_new};
use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::row_ids::WantedIdCounts;
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::actors::taxpayer::weight::Size;
use crate::domain::correction::amounts::Amounts;
use crate::domain::correction::credits::Credits;
use crate::domain::correction::plan::{Case, Numbers, Plan, Wish};
use crate::domain::correction::record::{
    Correction, CorrectionState, DocumentPurpose, PlannedDocument,
};
use crate::domain::events::event::EventKind;
use crate::domain::invoice::breakdown::Breakdown;
use crate::domain::invoice::irn::Irn;
use crate::domain::invoice::lifecycle::Transition;
use crate::domain::invoice::stored_document::type_code;
use crate::domain::invoice::{Draft, Invoice, batch};
use crate::domain::kernel::codes::{SettableStatus, WorkflowStatus, is_self_billed};
use crate::domain::kernel::ids::InvoiceId;
use crate::domain::kernel::refusal::Refusal;
use crate::domain::reference::catalog::Catalog;
use crate::store::ids::IdKind;
use crate::store::invoices::CORRECTING_MAX;
use crate::store::invoices::corrections::StoredCorrection;

/// These letters and a digit follow the number of the original in that of its credit note, and in that of its
/// replacement. The authority takes letters and digits only.
const CREDIT_NOTE_MARK: &str = "CN";
const REPLACEMENT_MARK: &str = "R";
/// For a credit note and for a replacement, at most so many invoice numbers are tried.
const NUMBERS_MAX: u32 = 20;
/// The longest number that forms take.
const NUMBER_CHARS_MAX: usize = 255;
/// The remark of the status that a document of a correction gets.
const REMARK: &str = "Approved by the correction";

/// The names of the invoice, which never change.
#[derive(Debug, Clone)]
pub struct CorrectedNames {
    pub id: InvoiceId,
    pub irn: Irn,
    /// The references by which another invoice may name it.
    pub references: Vec<String>,
}

impl From<&Invoice> for CorrectedNames {
    fn from(invoice: &Invoice) -> Self {
        Self {
            id: invoice.id,
            irn: invoice.irn.clone(),
            references: invoice.own_references(),
        }
    }
}

/// Starts the correction of a signed invoice, or only tells its plan. A correction without documents is done at once and
/// leaves no record.
pub struct CorrectInvoice {
    pub original: CorrectedNames,
    pub wish: Wish,
    pub today: Date,
    pub catalog: Arc<Catalog>,
    pub is_preview: bool,
}

/// The numbers that a new document may have, and its day, which is a part of its IRN.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberKind {
    mark: &'static str,
    date: Date,
}

impl NumberKind {
    fn credit_note(date: Date) -> Self {
        let mark = CREDIT_NOTE_MARK;
        Self { mark, date }
    }

    pub(super) fn replacement(date: Date) -> Self {
        let mark = REPLACEMENT_MARK;
        Self { mark, date }
    }

    fn numbers(self, original: &Irn) -> impl Iterator<Item = String> {
        let start = format!("{}{}", original.invoice_no(), self.mark);
        (1..=NUMBERS_MAX).map(move |at| format!("{start}{at}"))
    }
}

/// The numbers and IRNs of the new documents. For a cancellation, `replacement` repeats `credit_note`.
struct Names {
    credit_note: FreeName,
    replacement: FreeName,
}

/// The documents of a correction, and their names.
struct NamedPlan {
    plan: Plan,
    names: Names,
}

/// The number and the IRN of a new document.
#[derive(Debug, Clone)]
pub(super) struct FreeName {
    pub(super) invoice_no: String,
    pub(super) irn: Irn,
}

impl CorrectInvoice {
    fn plan(
        &self,
        uow: &UnitOfWork,
        original: &Invoice,
        credit_notes: &[Invoice],
    ) -> Result<NamedPlan, Refusal> {
        let credit_note = free_name(uow, &original.irn, NumberKind::credit_note(self.today))?;
        let replacement = match &self.wish {
            Wish::Cancel => credit_note.clone(),
            Wish::Become(wanted) => {
                let kind = NumberKind::replacement(wanted.invoice_date);
                free_name(uow, &original.irn, kind)?
            }
        };
        let numbers = Numbers {
            credit_note: credit_note.invoice_no.clone(),
            replacement: replacement.invoice_no.clone(),
        };
        let case = Case {
            original,
            credit_notes,
            numbers: &numbers,
            today: self.today,
            catalog: &self.catalog,
        };
        let plan = case.plan(&self.wish);
        let plan = plan.map_err(|error| Refusal::NotCorrectable(error.to_string()))?;
        let names = Names {
            credit_note,
            replacement,
        };
        Ok(NamedPlan { plan, names })
    }
}

impl TaxpayerCommand for CorrectInvoice {
    type Output = Correction;

    const NAME: &'static str = "correct-invoice";

    fn size(&self) -> Size {
        match &self.wish {
            Wish::Cancel => Size::default(),
            Wish::Become(wanted) => Size::for_draft(wanted),
        }
    }

    fn add_wanted_id_counts(&self, wanted: &mut WantedIdCounts) {
        wanted.add(IdKind::Invoice, 1);
    }

    fn add_reads(&self, wanted: &mut ReadSet, context: &ReadContext<'_>) {
        let CorrectedNames {
            id,
            irn,
            references,
        } = &self.original;
        wanted.add_correction(*id, references.clone());
        add_names(wanted, context, irn, NumberKind::credit_note(self.today));
        if let Wish::Become(draft) = &self.wish {
            let kind = NumberKind::replacement(draft.invoice_date);
            add_names(wanted, context, irn, kind);
        }
    }

    fn execute(&self, uow: &mut UnitOfWork) -> Result<Correction, Refusal> {
        uow.taxpayer()?
            .check_may_create_invoices(uow.verification)?;
        let original = uow.invoices.with_id(self.original.id);
        let original = original.ok_or(Refusal::InvoiceNotFound)?.clone();
        check_correctable(&original, &self.catalog)?;
        check_earlier_corrections(uow, original.id)?;
        let credits = known_credits(uow, &original)?;
        let planned = self.plan(uow, &original, &credits.signed)?;
        let mut correction = describe(uow, &original, &credits, &planned, &self.catalog);
        let NamedPlan { plan, names } = planned;
        if self.is_preview || correction.documents.is_empty() {
            return Ok(correction);
        }
        correction.correction_no = draw_number(uow);
        correction.state = CorrectionState::Running;
        if let (Some(draft), Some(document)) = (&plan.credit_note, correction.documents.first_mut())
        {
            document.id = Some(create_credit_note(
                uow,
                &original,
                draft,
                names.credit_note.irn,
            )?);
        }
        uow.start_correction(StoredCorrection {
            correction: correction.clone(),
            replacement: plan.replacement,
        });
        Ok(correction)
    }
}

/// Draws a number like that of a batch, from the day and a random part.
fn draw_number(uow: &UnitOfWork) -> String {
    let number = batch::draw_batch_number(uow.now, &mut clock::system_rng());
    number.replacen('B', "C", 1)
}

fn describe(
    uow: &UnitOfWork,
    original: &Invoice,
    credits: &Credits,
    NamedPlan { plan, names }: &NamedPlan,
    catalog: &Catalog,
) -> Correction {
    let document = |kind, draft: &Option<Draft>, name: &FreeName| {
        draft.as_ref().map(|draft| PlannedDocument {
            kind,
            taxes: Breakdown::from_draft(draft, catalog)
                .map(|breakdown| Amounts::from(breakdown).taxes)
                .unwrap_or_default(),
            invoice_no: name.invoice_no.clone(),
            irn: name.irn.clone(),
            payable: draft.payable,
            id: None,
            is_signed: false,
        })
    };
    let documents = [
        document(
            DocumentPurpose::CreditNote,
            &plan.credit_note,
            &names.credit_note,
        ),
        document(
            DocumentPurpose::Replacement,
            &plan.replacement,
            &names.replacement,
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
        paid: credits.received(original),
        created_at: uow.now,
        updated_at: uow.now,
    }
}

fn check_correctable(original: &Invoice, catalog: &Catalog) -> Result<(), Refusal> {
    let refuse = |reason: &str| Err(Refusal::NotCorrectable(reason.to_owned()));
    if !original.authority.signed {
        return refuse(match original.status {
            WorkflowStatus::Draft | WorkflowStatus::Approved => {
                "The authority has not signed this invoice: edit it with PUT /v1/tax-payers/invoices/update, or cancel it."
            }
            WorkflowStatus::Cancelled => "This invoice is cancelled: there is nothing to correct.",
            _ => "The authority has not signed this invoice yet. Correct it once it is signed.",
        });
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

/// Refuses an invoice that a correction is about now, or that was replaced.
fn check_earlier_corrections(uow: &UnitOfWork, original: InvoiceId) -> Result<(), Refusal> {
    for known in uow
        .corrections
        .iter()
        .filter(|known| known.original == original)
    {
        if known.state.is_open() {
            return Err(Refusal::NotCorrectable(format!(
                "The correction {} of this invoice is under way. Wait for its end, or cancel the document that it waits for.",
                known.correction_no
            )));
        }
        let replaced = known
            .documents
            .iter()
            .find(|document| document.kind == DocumentPurpose::Replacement && document.is_signed);
        if let Some(replaced) = replaced {
            return Err(Refusal::NotCorrectable(format!(
                "This invoice was replaced by {}. Correct that one.",
                replaced.invoice_no
            )));
        }
    }
    Ok(())
}

/// Returns the credit notes of an invoice. Refuses an invoice with one that may still be signed, because its amounts would
/// then be credited twice.
fn known_credits(uow: &UnitOfWork, original: &Invoice) -> Result<Credits, Refusal> {
    if uow.correcting.len() > CORRECTING_MAX {
        return Err(Refusal::NotCorrectable(format!(
            "More than {CORRECTING_MAX} documents refer to this invoice. Cancel those that are not signed, or correct it in the system that made them."
        )));
    }
    let credits = Credits::new(original, uow.correcting.clone());
    match credits.unsigned.first() {
        None => Ok(credits),
        Some(note) => Err(Refusal::NotCorrectable(format!(
            "The credit note {} of this invoice is not signed. Submit it or cancel it first.",
            note.invoice_no
        ))),
    }
}

/// Asks for the invoices that may have the numbers of new documents.
pub(super) fn add_names(
    wanted: &mut ReadSet,
    context: &ReadContext<'_>,
    original: &Irn,
    kind: NumberKind,
) {
    for number in kind.numbers(original) {
        wanted.add_invoice_no(&number);
        let taxpayer = context.cached.taxpayer.as_ref();
        let irn = taxpayer
            .and_then(|taxpayer| Irn::for_invoice(&number, &taxpayer.service_id, kind.date).ok());
        if let Some(irn) = irn {
            wanted.add_irn(&irn);
        }
    }
}

/// Returns the first number of this kind that no invoice has.
pub(super) fn free_name(
    uow: &UnitOfWork,
    original: &Irn,
    kind: NumberKind,
) -> Result<FreeName, Refusal> {
    let service_id = &uow.taxpayer()?.service_id;
    let found = kind.numbers(original).find_map(|invoice_no| {
        let irn = Irn::for_invoice(&invoice_no, service_id, kind.date).ok()?;
        let is_free =
            uow.invoices.with_number(&invoice_no).is_none() && uow.invoice_with_irn(&irn).is_none();
        let is_short = invoice_no.chars().count() <= NUMBER_CHARS_MAX;
        (is_free && is_short).then_some(FreeName { invoice_no, irn })
    });
    found.ok_or_else(|| {
        Refusal::NotCorrectable(
            "No number is free for the documents of this correction. Create them in the system that made the invoice."
                .to_owned(),
        )
    })
}

/// Creates the approved credit note. It has the customer and the items of the original, so nothing is looked up.
fn create_credit_note(
    uow: &mut UnitOfWork,
    original: &Invoice,
    draft: &Draft,
    irn: Irn,
) -> Result<InvoiceId, Refusal> {
    let (note, posting) = new_invoice(uow, draft, irn, original.customer.clone());
    store_new(uow, &note, posting);
    approve(uow, note)
}

/// Approves a new document of a correction.
pub(super) fn approve(uow: &mut UnitOfWork, document: Invoice) -> Result<InvoiceId, Refusal> {
    let previous = document.status;
    let approved = Transition::Set(SettableStatus::Approved);
    let approved = document.apply_transition(approved, uow.now)?;
    let extra = json!({ "previous_status": previous, "remark": REMARK });
    uow.emit_about(EventKind::InvoiceStatusUpdated, &approved, extra);
    let id = approved.id;
    uow.put_invoice(approved);
    Ok(id)
}
