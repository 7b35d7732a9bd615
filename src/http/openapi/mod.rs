//! The API document (`OpenAPI` 3.1). The forms describe the request bodies that they read, and the views describe the
//! responses that they write. The tables here only assign bodies and responses to operations.
//!
//! | Concept | File |
//! |---|---|
//! | the whole document | `document` |
//! | one operation: key, parameters, body, answers, failures | `operation` |
//! | parameters of paths and query strings | `parameter` |
//! | schemas of forms, envelopes and failures | `schema` |
//! | inputs that make the simulator fail | `trying` |
//! | the tables, one for each part of the API | `core`, `tax_payers`, `system_integrators`, `app`, `ops` |

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
