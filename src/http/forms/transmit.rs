//! Transmit (spec.md): which invoice.

use crate::domain::invoice::irn::Irn;
use crate::domain::party::Taxpayer;
use crate::http::forms::ownership;
use crate::http::forms::reader::Reader;

/// The IRN, which must be of the taxpayer that is acted for.
pub(crate) fn read(reader: &mut Reader<'_>, taxpayer: Option<&Taxpayer>) -> Option<Irn> {
    ownership::business_id_if_any(reader, taxpayer);
    ownership::irn(reader, taxpayer)
}
