//! Reads the periods, references to other documents, charges and payment means of a document.

use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::reference::catalog::ReferenceList;
use crate::http::forms::bounds::AmountBounds;
use crate::http::forms::field::IRN_CHARS_MAX;
use crate::http::forms::reader::Reader;

/// Optional fields, each of which references one other document.
const DOCUMENT_REFERENCES: [&str; 4] = [
    "dispatch_document_reference",
    "receipt_document_reference",
    "originator_document_reference",
    "contract_document_reference",
];

/// Checks the fields. `needs_billing_reference` is true for a document that changes an earlier invoice.
pub(crate) fn read(reader: &mut Reader<'_>, needs_billing_reference: bool) {
    reader
        .optional("invoice_delivery_period")
        .object(check_period);
    let references_min = usize::from(needs_billing_reference);
    reader
        .required_if(needs_billing_reference, "billing_reference")
        .objects(references_min, check_reference);
    for name in DOCUMENT_REFERENCES {
        reader.optional(name).object(check_reference);
    }
    reader
        .optional("additional_document_reference")
        .objects(0, check_reference);
    reader.optional("allowance_charge").objects(0, check_charge);
}

fn check_period(reader: &mut Reader<'_>) -> Option<()> {
    let start = reader.required("start_date").date();
    let end = reader.required("end_date").date();
    if start? > end? {
        reader.report_fault("end_date", FieldRule::NotBefore("start_date"));
    }
    Some(())
}

fn check_reference(reader: &mut Reader<'_>) -> Option<()> {
    let irn = reader.required("irn").identifier(IRN_CHARS_MAX);
    let issue_date = reader.required("issue_date").date();
    irn.zip(issue_date).map(drop)
}

pub(crate) fn check_payment_means(reader: &mut Reader<'_>) -> Option<()> {
    reader.optional("payment_due_date").date();
    reader
        .required("payment_means_code")
        .code(ReferenceList::PaymentMeans)
        .map(drop)
}

fn check_charge(reader: &mut Reader<'_>) -> Option<()> {
    let indicator = reader.required("charge_indicator").boolean();
    let amount = reader.required("amount").amount(AmountBounds::NOT_NEGATIVE);
    indicator.zip(amount).map(drop)
}
