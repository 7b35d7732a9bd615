//! UBL 2.1 (OASIS), within the European standard EN 16931: writes a trade document as XML, and reads XML, also of other
//! programs, into a trade document.
//!
//! A trade document has the authority's codes; `codes` maps them to those of UBL. A part of the XML for which there is
//! no field is kept as text (`UnmappedPart`), so that it can be written again. Each difference between the XML and the
//! trade document is reported in one sentence (`Change`). This crate does not judge a document: for example, it also
//! reads an invoice without a tax number.

mod active_content;
mod allocate;
mod beside;
mod codes;
mod element;
mod fault;
mod field_parts;
mod fixed_texts;
mod negative_parts;
mod order;
mod parse;
mod read;
mod rounding;
mod serialize;
mod untaxed;
mod write;

pub use allocate::{AllocatedDocument, allocate_charges, fold_fees_into_prices};
pub use beside::UnmappedPart;
pub use fault::{Cause, Change, Fault, UnwritableDocument};
pub use field_parts::parts_after_emptying;
pub use parse::Limits;
pub use read::{ReadDocument, read, read_with_units};
pub use untaxed::{SplitCharges, split_untaxed_charges};
pub use write::{write, write_with_parts};
