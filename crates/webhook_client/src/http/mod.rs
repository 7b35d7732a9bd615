//! The HTTP client for URLs that strangers have chosen. It connects only to permitted addresses.
//!
//! | Concept | File |
//! |---|---|
//! | the client: limits of time and size, no redirects, no proxy | `client` |
//! | the check of `address_policy` at each connection | `connect_policy`, applied by `resolver` and `connector` |
//! | how much is read from a connection | `read_budget`, applied by `connector` |
//! | the data of a request that connector and resolver need | `request_context` |
//! | connections that are kept open | `keep_alive` |
//! | headers for the log of attempts, without secrets | `logged_headers` |
//! | times of the phases of an attempt | `phases` |

pub(super) mod client;
pub(super) mod connect_policy;
mod connector;
mod keep_alive;
mod logged_headers;
pub(super) mod phases;
pub(super) mod read_budget;
mod request_context;
pub(super) mod resolver;
#[cfg(test)]
mod ssrf;

pub use client::{ClientBuildError, GuardedClient, PostRequest};
pub use logged_headers::LoggedHeaders;
pub use phases::PhaseTimes;
