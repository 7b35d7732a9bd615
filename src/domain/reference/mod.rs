//! The authority's reference lists, and what a caller most likely meant by a value that is not in them.

pub mod catalog;
pub mod fuzzy_code;
pub mod lenient_date;
