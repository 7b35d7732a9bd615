//! The HTTP client for URLs that taxpayers have chosen. It connects only to permitted addresses.
//!
//! | Concept | File |
//! |---|---|
//! | the client: limits of time and size, no redirects, no proxy | `client` |
//! | URLs and addresses that may be called | `destination`, `address` |
//! | the check at each connection | `connect_policy`, applied by `resolver` and `request_context` |
//! | connections that are kept open | `keep_alive` |
//! | times of the phases of an attempt | `phases` |

pub(super) mod address;
pub(super) mod client;
pub(super) mod connect_policy;
pub(super) mod destination;
mod keep_alive;
pub(super) mod phases;
mod request_context;
mod resolver;
#[cfg(test)]
mod ssrf;

pub use address::AddressPolicy;
pub use client::{ClientBuildError, GuardedClient, PostRequest};
pub use destination::{URL_CHARS_MAX, UrlFault};
pub use phases::PhaseTimes;
