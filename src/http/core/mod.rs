//! `/v1/core`: option lists.

mod invoice_categories;

pub(super) use invoice_categories::invoice_categories;
