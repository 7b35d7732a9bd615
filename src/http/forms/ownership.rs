//! What a body says of whose it is: its business id, its IRN and the tax number of who issues it must be those of the
//! taxpayer that is acted for.
//! Without a taxpayer, where an integrator named none, only the other faults are of interest.

use crate::domain::invoice::irn::Irn;
use crate::domain::party::Taxpayer;
use crate::domain::party::normal_form::is_same_tin;
use crate::http::forms::field::TEXT_MAX;
use crate::http::forms::reader::Reader;
use crate::http::forms::taxpayer;

pub(crate) fn business_id(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) {
    let business_id = taxpayer::uuid(reader.required("business_id"));
    check_business_id(reader, business_id, taxpayer);
}

/// Where a form needs none it may still say which taxpayer is meant.
pub(crate) fn business_id_if_any(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) {
    let business_id = taxpayer::uuid(reader.optional("business_id"));
    check_business_id(reader, business_id, taxpayer);
}

fn check_business_id(reader: &mut Reader<'_>, business_id: Option<String>, taxpayer: Option<&Taxpayer>) {
    let is_other = |id: &str, taxpayer: &Taxpayer| !id.eq_ignore_ascii_case(&taxpayer.business_id);
    if business_id.zip(taxpayer).is_some_and(|(id, taxpayer)| is_other(&id, taxpayer)) {
        reader.fault("business_id", "own", "must be the business id of this taxpayer");
    }
}

/// The tax number of a party that has to be the taxpayer itself.
pub(crate) fn tin(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) {
    let tin = reader.required("tin").text(TEXT_MAX);
    let is_other = |tin: &str, taxpayer: &Taxpayer| !is_same_tin(tin, &taxpayer.tin);
    if tin.zip(taxpayer).is_some_and(|(tin, taxpayer)| is_other(&tin, taxpayer)) {
        reader.fault("tin", "own", "must be the tax number of this taxpayer");
    }
}

/// An IRN that carries the taxpayer's service id.
pub(crate) fn irn(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) -> Option<Irn> {
    let irn = reader.required("irn").irn();
    check_irn(reader, irn, taxpayer)
}

/// The same, with a length of its own.
pub(crate) fn short_irn(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>, max: usize) -> Option<Irn> {
    let irn = reader.required("irn").short_irn(max);
    check_irn(reader, irn, taxpayer)
}

/// An IRN that the authority may sign.
pub(crate) fn signable_irn(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) -> Option<Irn> {
    let irn = irn(reader, taxpayer)?;
    if !is_taken_by_authority(irn.invoice_no()) {
        let what =
            "must begin with an invoice number of letters and digits only, which the authority requires";
        reader.fault("irn", "irn_invoice_no", what);
    }
    Some(irn)
}

fn check_irn(reader: &mut Reader<'_>, irn: Option<Irn>, taxpayer: Option<&Taxpayer>) -> Option<Irn> {
    let irn = irn?;
    if taxpayer.is_some_and(|taxpayer| !irn.has_service_id(&taxpayer.service_id)) {
        let what = "must carry the service id of this taxpayer";
        reader.fault("irn", "irn_service_id_mismatch", what);
    }
    Some(irn)
}

/// The authority takes invoice numbers of letters and digits only.
pub(crate) fn is_taken_by_authority(invoice_no: &str) -> bool {
    invoice_no.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
