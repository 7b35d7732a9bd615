//! The metrics page, in the text format of Prometheus. `traffic` counts requests as they are answered,
//! `history` keeps those of the last minutes,
//! `database_counts` reads values from the database every few seconds, and `page` reads all other values at the scrape.

pub(crate) mod database_counts;
mod database_page;
mod families;
pub(crate) mod history;
mod page;
pub(crate) mod process;
mod request_log;
mod spans;
pub(super) mod traffic;

pub use database_counts::CachedCounts;
pub(crate) use page::{CONTENT_TYPE, render_page};
pub use traffic::Traffic;
