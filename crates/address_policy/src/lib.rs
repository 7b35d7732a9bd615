//! Decides which addresses and URLs an outgoing call may lead to, for URLs that strangers have chosen. Nothing here
//! resolves a name or opens a connection: `webhook_client` asks this crate at every connection.
//!
//! | Concept | File |
//! |---|---|
//! | a network that is allowed besides the public ones; the addresses that are never called | `network` |
//! | the addresses that may be called | `address` |
//! | the URLs that may be called | `destination` |

mod address;
mod destination;
mod network;

pub use address::AddressPolicy;
pub use destination::{URL_CHARS_MAX, UrlFault};
pub use network::{AllowedNetwork, NetworkFault};
