//! The authority's reference lists, and guesses at the value that a caller meant.
//!
//! | File | Content |
//! |---|---|
//! | `catalog` | a snapshot of the authority's reference lists |
//! | `country` | finds the code of a country by its code of two letters, its name, or its code of three letters |
//! | `fuzzy_code` | guesses the code that a caller meant by a text that is not a code: another spelling, the name of an item, or a typo |
//! | `lenient_date` | parses a day in other forms than `YYYY-MM-DD`, if the text has only one meaning |

pub mod catalog;
pub mod country;
pub mod fuzzy_code;
pub mod lenient_date;
