//! The numbers and the IRNs of the new documents of a correction: a credit note and a replacement.

use jiff::civil::Date;

use crate::actors::taxpayer::read_set::{ReadContext, ReadSet};
use crate::actors::taxpayer::unit_of_work::UnitOfWork;
use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::refusal::Refusal;

/// The number of a credit note or a replacement is the number of the original, followed by one of these marks and a
/// counter. The marks are letters, because the authority accepts only letters and digits.
const CREDIT_NOTE_MARK: &str = "CN";
const REPLACEMENT_MARK: &str = "R";
/// The maximum number of invoice numbers that are tried for one document.
const NUMBERS_MAX: u32 = 20;
/// The maximum number of characters of an invoice number, as in the requests that create invoices.
const NUMBER_CHARS_MAX: usize = 255;

/// The kind of a new document: the mark in its number, and its date, which is a part of its IRN.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberKind {
    mark: &'static str,
    date: Date,
}

impl NumberKind {
    pub(super) fn credit_note(date: Date) -> Self {
        let mark = CREDIT_NOTE_MARK;
        Self { mark, date }
    }

    pub(super) fn replacement(date: Date) -> Self {
        let mark = REPLACEMENT_MARK;
        Self { mark, date }
    }

    /// Returns the numbers that are tried in turn, such as `INV1CN1`, `INV1CN2` and so on.
    fn candidate_numbers(self, original: &Irn) -> impl Iterator<Item = String> {
        let start = format!("{}{}", original.invoice_no(), self.mark);
        (1..=NUMBERS_MAX).map(move |at| format!("{start}{at}"))
    }
}

/// The number and the IRN of a new document, which no invoice has yet.
#[derive(Debug, Clone)]
pub(super) struct FreeIdentifiers {
    pub(super) invoice_no: String,
    pub(super) irn: Irn,
}

/// Adds to `wanted` the invoices that already have a number or an IRN that the new document might get.
pub(super) fn add_identifier_reads(
    wanted: &mut ReadSet,
    context: &ReadContext<'_>,
    original: &Irn,
    kind: NumberKind,
) {
    for number in kind.candidate_numbers(original) {
        wanted.add_invoice_no(&number);
        let taxpayer = context.cached.taxpayer.as_ref();
        let irn = taxpayer
            .and_then(|taxpayer| Irn::for_invoice(&number, &taxpayer.service_id, kind.date).ok());
        if let Some(irn) = irn {
            wanted.add_irn(&irn);
        }
    }
}

/// Returns the first number of this kind that no invoice has, with the IRN that follows from it.
pub(super) fn find_free_identifiers(
    uow: &UnitOfWork,
    original: &Irn,
    kind: NumberKind,
) -> Result<FreeIdentifiers, Refusal> {
    let service_id = &uow.taxpayer()?.service_id;
    let found = kind.candidate_numbers(original).find_map(|invoice_no| {
        let irn = Irn::for_invoice(&invoice_no, service_id, kind.date).ok()?;
        let is_free = uow.invoices.find_by_number(&invoice_no).is_none()
            && uow.find_invoice_by_irn(&irn).is_none();
        let is_short = invoice_no.chars().count() <= NUMBER_CHARS_MAX;
        (is_free && is_short).then_some(FreeIdentifiers { invoice_no, irn })
    });
    found.ok_or_else(|| {
        Refusal::NotCorrectable(
            "No number is free for the documents of this correction. Create them in the system that made the invoice."
                .to_owned(),
        )
    })
}
