//! The API document (`OpenAPI` 3.1), generated from the table of endpoints. The schemas of request bodies come from the
//! forms that read the bodies, and the schemas of responses come from the views that are sent, so the document agrees
//! with the code. An endpoint only names its form and its view.
//!
//! | Concept | File |
//! |---|---|
//! | the whole document | `document` |
//! | one operation: key, parameters, body, answers, failures | `operation` |
//! | parameters of paths and query strings | `parameter` |
//! | schemas of forms, envelopes and failures | `schema` |
//! | schemas of the domain's types | `domain_types` |
//! | inputs that make the simulator fail | `trying` |

pub(crate) mod document;
mod domain_types;
#[cfg(test)]
mod fields;
pub(crate) mod operation;
mod parameter;
pub(crate) mod schema;
#[cfg(test)]
mod tests;
mod trying;

pub(crate) use operation::{OperationDoc, doc, example};
