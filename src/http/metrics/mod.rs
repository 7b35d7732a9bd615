//! The metrics page, in the text format of Prometheus.
//!
//! | Concept | File |
//! |---|---|
//! | requests, counted as they are answered | `traffic` |
//! | everything else, looked up when the page is asked for | `page` |

mod page;
mod traffic;

pub(crate) use page::{CONTENT_TYPE, page};
pub use traffic::Traffic;
