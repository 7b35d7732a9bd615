//! Transmit (spec.md): which invoice.

use crate::domain::irn::Irn;
use crate::domain::party::Taxpayer;
use crate::http::forms::reader::Reader;

/// The IRN, which must be of the taxpayer that is acted for.
pub(crate) fn read(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) -> Option<Irn> {
    let irn = reader.required("irn").irn()?;
    if taxpayer.is_some_and(|taxpayer| !irn.has_service_id(&taxpayer.service_id)) {
        let what = "must carry the service id of this taxpayer";
        reader.fault("irn", "irn_service_id_mismatch", what);
        return None;
    }
    Some(irn)
}
