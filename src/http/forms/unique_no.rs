//! Reads the reference to an invoice (`unique_no`) and its kind (`unique_no_type`).

use crate::domain::invoice::invoice_ref::InvoiceRef;
use crate::domain::kernel::codes::UniqueNoType;
use crate::http::forms::field::IRN_CHARS_MAX;
use crate::http::forms::reader::Reader;

pub(crate) fn read(reader: &mut Reader<'_>) -> Option<InvoiceRef> {
    let text = reader.required("unique_no").identifier(IRN_CHARS_MAX);
    let kind = reader
        .required("unique_no_type")
        .word(UniqueNoType::parse, UniqueNoType::allowed_words);
    Some(InvoiceRef {
        kind: kind?,
        text: text?,
    })
}
