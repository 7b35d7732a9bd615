//! Transmit (spec.md): the body names the invoice to transmit by its IRN.

use crate::domain::invoice::irn::Irn;
use crate::domain::party::Taxpayer;
use crate::http::forms::ownership;
use crate::http::forms::reader::Reader;

/// Reads the IRN, which must belong to the acting taxpayer.
pub(crate) fn read(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) -> Option<Irn> {
    ownership::business_id_if_any(reader, taxpayer);
    ownership::irn(reader, taxpayer)
}
