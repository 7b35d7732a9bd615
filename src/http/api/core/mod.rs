//! `/v1/core`: option lists and reference lists.

mod lists;

pub(crate) use lists::{enums, invoice_categories, resources};
