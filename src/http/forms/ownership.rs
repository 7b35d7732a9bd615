//! Reads the business id, the IRN and the tax number, and checks that they belong to the acting taxpayer. If `taxpayer`
//! is `None`, only the format of the fields is checked.

use crate::domain::invoice::irn::{Irn, is_submittable_number};
use crate::domain::kernel::field_rule::FieldRule;
use crate::domain::party::Taxpayer;
use crate::domain::party::normal_form::is_same_tin;
use crate::http::forms::field::TEXT_CHARS_MAX;
use crate::http::forms::reader::Reader;
use crate::http::forms::taxpayer;

pub(crate) fn read_required_business_id(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) {
    let business_id = taxpayer::read_uuid(reader.required("business_id"));
    check_business_id(reader, business_id, taxpayer);
}

/// Reads an optional business id, by which an integrator can name the taxpayer.
pub(crate) fn read_optional_business_id(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) {
    let business_id = taxpayer::read_uuid(reader.optional("business_id"));
    check_business_id(reader, business_id, taxpayer);
}

fn check_business_id(
    reader: &mut Reader<'_>,
    business_id: Option<String>,
    taxpayer: Option<&Taxpayer>,
) {
    let is_other = business_id
        .zip(taxpayer)
        .is_some_and(|(id, taxpayer)| !id.eq_ignore_ascii_case(&taxpayer.business_id));
    if is_other {
        reader.report_fault(
            "business_id",
            FieldRule::must_be("own", "the business id of this taxpayer"),
        );
    }
}

/// Reads the tax number of a party. If a taxpayer is given, the tax number must be that taxpayer's.
pub(crate) fn read_tin(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) {
    let tin = reader.required("tin").identifier(TEXT_CHARS_MAX);
    if tin
        .zip(taxpayer)
        .is_some_and(|(tin, taxpayer)| !is_same_tin(&tin, &taxpayer.tin))
    {
        reader.report_fault(
            "tin",
            FieldRule::must_be("own", "the tax number of this taxpayer"),
        );
    }
}

/// The taxpayer that must be the supplier of a document, or the customer. A party that is `None` may be anybody.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedParties<'t> {
    pub(crate) supplier: Option<&'t Taxpayer>,
    pub(crate) customer: Option<&'t Taxpayer>,
}

impl<'t> ExpectedParties<'t> {
    /// Returns the parties of a document that the taxpayer submits: the taxpayer is the customer if the document is
    /// self-billed, otherwise the supplier.
    pub(crate) fn new(taxpayer: Option<&'t Taxpayer>, is_self_billed: bool) -> Self {
        if is_self_billed {
            Self {
                supplier: None,
                customer: taxpayer,
            }
        } else {
            Self {
                supplier: taxpayer,
                customer: None,
            }
        }
    }
}

/// Reads an IRN, which must carry the taxpayer's service id.
pub(crate) fn read_irn(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) -> Option<Irn> {
    let irn = reader.required("irn").irn();
    check_irn(reader, irn, taxpayer)
}

/// Reads an IRN of at most `max` characters, which must carry the taxpayer's service id.
pub(crate) fn read_irn_with_max(
    reader: &mut Reader<'_>,
    taxpayer: Option<&Taxpayer>,
    max: usize,
) -> Option<Irn> {
    let irn = reader.required("irn").irn_with_max(max);
    check_irn(reader, irn, taxpayer)
}

/// Reads an IRN that the authority can sign: its invoice number has letters and digits only.
pub(crate) fn read_signable_irn(
    reader: &mut Reader<'_>,
    taxpayer: Option<&Taxpayer>,
) -> Option<Irn> {
    let irn = read_irn(reader, taxpayer)?;
    if !is_submittable_number(irn.invoice_no()) {
        let rule = FieldRule::with_expected(
            "irn_invoice_no",
            "must begin with an invoice number of letters and digits only, which the authority requires",
            "an invoice number of letters and digits only, which the authority requires",
        );
        reader.report_fault("irn", rule);
    }
    Some(irn)
}

fn check_irn(
    reader: &mut Reader<'_>,
    irn: Option<Irn>,
    taxpayer: Option<&Taxpayer>,
) -> Option<Irn> {
    let irn = irn?;
    if taxpayer.is_some_and(|taxpayer| !irn.has_service_id(&taxpayer.service_id)) {
        let rule = FieldRule::with_expected(
            "irn_service_id_mismatch",
            "must carry the service id of this taxpayer",
            "the service id of this taxpayer",
        );
        reader.report_fault("irn", rule);
    }
    Some(irn)
}
