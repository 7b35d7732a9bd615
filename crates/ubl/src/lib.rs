//! UBL 2.1 (OASIS), in the core of the European standard EN 16931: writes a trade document as XML,
//! and reads XML that others wrote into one.
//!
//! The document has the authority's codes; `codes` holds them beside those of UBL. A part of the
//! XML that no field carries is kept as text (`Beside`), so that it can be written again. Every
//! difference between the XML and the document is told in one sentence (`Change`). This crate does
//! not judge a document: an invoice without a tax number is read, too.

mod allocate;
mod beside;
mod codes;
mod element;
mod fault;
mod fixed_texts;
mod order;
mod parse;
mod read;
mod rounding;
mod serialize;
mod untaxed;
mod write;

pub use allocate::{Allocated, allocate, fold_fees};
pub use beside::{Beside, empty_fields};
pub use fault::{Cause, Change, Fault, Unwritable};
pub use parse::Limits;
pub use read::{ReadDocument, read, read_with_units};
pub use untaxed::{SplitCharges, split_untaxed};
pub use write::{write, write_with};
