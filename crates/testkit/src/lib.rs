//! The code that the tests of the API, the scenarios and the benchmarks share. It knows the service only from outside
//! and never imports it, so it is compiled once for all of them.
//!
//! | Concept | File |
//! |---|---|
//! | the sample documents, one of each kind | `documents` |
//! | changes to them, by dot path | `edit` |
//! | the HTTP client, its answers, and the roles that call | `client`, `answer`, `roles` |
//! | the webhook receiver, what it received and its answers | `receiver` |
//! | waiting for an event that must come | `patience` |
//! | the databases that a case runs on | `backend`; the attributes are in `testkit_macros` |

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends by panicking"
)]
#![expect(
    clippy::return_self_not_must_use,
    reason = "an answer that was checked is often not needed any more"
)]

pub mod answer;
pub mod backend;
pub mod client;
pub mod documents;
pub mod edit;
pub mod patience;
pub mod receiver;
pub mod roles;
pub mod standstill;

pub use backend::Backend;
pub use testkit_macros::{each_database, on_postgresql, on_sqlite};
