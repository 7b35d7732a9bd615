//! The metrics page, in the text format of Prometheus. `traffic` counts requests as they are answered, `history` keeps
//! the requests of the last minutes, `database_counts` reads values from the database every few seconds, and `page`
//! reads all other values at the scrape.
//!
//! | File | Content |
//! |---|---|
//! | `database_counts` | counts from the database for operators and for the metrics page, read at most once every few seconds |
//! | `database_page` | the values of the metrics page that are counted in the database |
//! | `families` | helpers for all modules of the metrics page: the labels of a time series, and metrics that hold one value |
//! | `history` | requests of the last minutes, second by second, for the charts of the console |
//! | `page` | the metrics page, with the values that are read at the scrape |
//! | `process` | metrics of the process as the operating system sees it, under the names that Prometheus gives them |
//! | `request_log` | metrics of the request log: the requests that it dropped, by their outcome |
//! | `spans` | metrics of the trace spans of this process: how many were exported to the collector, and how many were dropped |
//! | `traffic` | counters of HTTP requests by route, method and class of status, and histograms of their durations |

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
