//! What the tests of the API, the scenarios and the benchmarks share. It knows the service from outside only and never
//! imports it, so that it is compiled once for all of them.
//!
//! | Concept | File |
//! |---|---|
//! | the sample documents, one of each kind | `documents` |
//! | changes to them, by dot path | `edit` |
//! | the databases that a case runs on | `backend`; the attributes are in `testkit_macros` |

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends by panicking")]

pub mod backend;
pub mod documents;
pub mod edit;

pub use backend::Backend;
pub use testkit_macros::{each_database, on_postgresql};
