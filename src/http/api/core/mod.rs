//! `/v1/core`: option lists and reference lists.

mod lists;

pub(in crate::http) use lists::{enums, invoice_categories, resources};
