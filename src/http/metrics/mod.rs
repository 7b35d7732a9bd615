//! The metrics page, in the text format of Prometheus.
//!
//! | Concept | File |
//! |---|---|
//! | requests, counted as they are answered | `traffic` |
//! | what the database knows, counted now and then | `figures` |
//! | the page, with everything else as it is when it is asked for | `page` |

mod figures;
mod page;
mod traffic;

pub use figures::Figures;
pub(crate) use page::{CONTENT_TYPE, page};
pub use traffic::Traffic;
