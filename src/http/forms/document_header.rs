//! Reads the header of an authority document, such as its dates and notes.

use jiff::civil::Date;

use crate::domain::invoice::irn::Irn;
use crate::domain::kernel::codes::CREDIT_NOTE_CODE;
use crate::domain::kernel::field_rule::FieldRule;
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::field::{LONG_TEXT_CHARS_MAX, TEXT_CHARS_MAX};
use crate::http::forms::reader::Reader;
use crate::http::forms::text_checks::is_clock_time;

/// A date before this year gets a warning.
const YEAR_MIN: i16 = 1900;

/// The authority's invoice type code of a debit note.
const DEBIT_NOTE_CODE: &str = "384";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Dates {
    pub(crate) issued: Option<Date>,
    pub(crate) due: Option<Date>,
}

/// Reads the dates. The issue date is always required. `requires_all`, which Validate sets, also requires the due date
/// and the tax point date.
pub(crate) fn read_dates(reader: &mut Reader<'_>, requires_all: bool) -> Dates {
    let issued = reader.required("issue_date").date();
    let due = reader.required_if(requires_all, "due_date").date();
    warn_of_old_date(reader, "issue_date", issued);
    if due.zip(issued).is_some_and(|(due, issued)| due < issued) {
        reader.report_fault("due_date", FieldRule::NotBefore("issue_date"));
    }
    let time_rule =
        FieldRule::must_be("time", "a time written HH:mm:ss, from 00:00:00 to 23:59:59");
    reader
        .optional("issue_time")
        .fitting_text(time_rule, is_clock_time);
    reader.required_if(requires_all, "tax_point_date").date();
    reader.optional("actual_delivery_date").date();
    Dates { issued, due }
}

/// Warns of a date so old that it is probably a mistake, such as the year 0026 in place of 2026.
pub(crate) fn warn_of_old_date(reader: &Reader<'_>, name: &str, date: Option<Date>) {
    if let Some(date) = date.filter(|date| date.year() < YEAR_MIN) {
        reader.warn(format!("{name} is in the year {:04}", date.year()));
    }
}

/// Returns a warning if an invoice is issued in the future. `today` is the last day that is not in the future.
pub(crate) fn future_date_warning(name: &str, issued: Date, today: Date) -> Option<String> {
    (issued > today).then(|| {
        format!(
            "{name} is in the future: once signed it stays, and the deadline counts from the submission"
        )
    })
}

/// Warns if the date inside the IRN is not the issue date of the document. The document is still accepted.
pub(crate) fn compare_irn_date(reader: &mut Reader<'_>, issued: Option<Date>, irn: Option<&Irn>) {
    if issued
        .zip(irn)
        .is_some_and(|(issued, irn)| irn.date() != Some(issued))
    {
        reader.warn("issue_date is not the date of the irn");
    }
}

pub(crate) fn read_optional_fields(reader: &mut Reader<'_>) {
    reader.optional("accounting_cost").amount(AmountBounds::Any);
    reader
        .optional("buyer_reference")
        .identifier(TEXT_CHARS_MAX);
    reader.optional("note").long_text(0, LONG_TEXT_CHARS_MAX);
    reader
        .optional("payment_terms_note")
        .long_text(0, LONG_TEXT_CHARS_MAX);
}

/// Returns true if a document of this type changes an earlier invoice. Such a document must reference that invoice.
pub(crate) fn is_correction(type_code: &str) -> bool {
    matches!(type_code, CREDIT_NOTE_CODE | DEBIT_NOTE_CODE)
}
