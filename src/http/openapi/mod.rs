//! The document of the API (`OpenAPI` 3.1). What a body may hold is told by the forms that read it, what an answer
//! holds by the views that write it; the tables here only say which operation takes and gives what.
//!
//! | Concept | File |
//! |---|---|
//! | the whole document | `document` |
//! | one operation: key, parameters, body, answers, failures | `operation` |
//! | parameters of paths and query strings | `parameter` |
//! | outlines of forms, envelopes and failures as schemas | `schema` |
//! | what to type to see the simulator fail | `trying` |
//! | the tables, one a surface | `core`, `tax_payers`, `system_integrators`, `app`, `ops` |

mod app;
mod core;
pub mod document;
#[cfg(test)]
mod fields;
mod operation;
mod ops;
mod parameter;
mod schema;
mod system_integrators;
mod tax_payers;
#[cfg(test)]
mod tests;
mod trying;
