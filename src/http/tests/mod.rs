//! Tests of the routes with all middleware.
//!
//! | Subject | File |
//! |---|---|
//! | keys, surfaces, the taxpayer that a call acts for | `access` |
//! | paths, methods, ids | `paths` |
//! | request bodies | `bodies` |
//! | requests that only read | `reads` |
//! | health, metrics, failures inside the service or at the authority | `operations` |
//! | the client of these tests | `client` |

mod access;
mod bodies;
mod client;
mod operations;
mod paths;
mod reads;
