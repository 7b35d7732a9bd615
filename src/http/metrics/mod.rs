//! The metrics page, in the text format of Prometheus.
//!
//! | Concept | File |
//! |---|---|
//! | requests, counted as they are answered | `traffic` |
//! | values from the database, read every few seconds | `database_counts` |
//! | the page, with all other values read at the scrape | `page` |

pub(super) mod database_counts;
mod page;
pub(super) mod traffic;

pub use database_counts::CachedCounts;
pub(crate) use page::{CONTENT_TYPE, page};
pub use traffic::Traffic;
