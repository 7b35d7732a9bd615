//! The metrics page, in the text format of Prometheus.
//!
//! | Concept | File |
//! |---|---|
//! | requests, counted as they are answered | `traffic` |
//! | what the database knows, counted now and then | `database_counts` |
//! | the page, with everything else as it is when it is asked for | `page` |

pub(super) mod database_counts;
mod page;
pub(super) mod traffic;

pub use database_counts::CachedCounts;
pub(crate) use page::{CONTENT_TYPE, page};
pub use traffic::Traffic;
