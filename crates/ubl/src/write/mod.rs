//! Writes a trade document as UBL.

mod document;
mod line;
mod money;
mod party;

use trade_document::TradeDocument;

use crate::active_content::remove_active_content;
use crate::beside::{UnmappedPart, merge_parts};
use crate::fault::UnwritableDocument;
use crate::order;
use crate::serialize::serialize_document;

pub(crate) use document::to_element;
pub(crate) use party::tin_scheme;

/// Writes a document as UBL 2.1.
pub fn write(document: &TradeDocument) -> Result<String, UnwritableDocument> {
    write_with_parts(document, &[])
}

/// Writes a document as UBL 2.1 with the parts that were kept when it was read. The parts fit the document as it was
/// read: after a change of its lines or taxes, do not pass them.
pub fn write_with_parts(
    document: &TradeDocument,
    beside: &[UnmappedPart],
) -> Result<String, UnwritableDocument> {
    let mut root = document::to_element(document)?;
    merge_parts(&mut root, beside);
    remove_active_content(&mut root);
    document::move_unstated_tax_currency(&mut root);
    order::sort_children(&mut root);
    serialize_document(&root)
}
