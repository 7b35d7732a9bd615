//! The authority's reference lists, and guesses at the value that a caller meant.

pub mod catalog;
pub mod country;
pub mod fuzzy_code;
pub mod lenient_date;
