//! The API document (`OpenAPI` 3.1), generated from the table of paths. The schemas of request bodies come from the
//! forms that read the bodies, and the schemas of responses come from the views that are sent, so the document agrees
//! with the code. A path only names its form and its view.
//!
//! | Concept | File |
//! |---|---|
//! | the whole document | `document` |
//! | the document as it is sent: plain, compressed, and its tag | `served_document` |
//! | what a path says about its operation: parameters, answers, failures | `operation_doc` |
//! | what it says about the request body | `request_body` |
//! | one operation of the document, with its path, methods and keys | `operation` |
//! | parameters of paths and query strings | `parameter` |
//! | headers of responses | `response_headers` |
//! | examples of answers, successful and failed | `recorded_examples` |
//! | notifications of events | `webhooks` |
//! | schemas of request bodies | `body_schema` |
//! | names of the objects within request bodies | `nested_objects` |
//! | fields that are required on a condition | `conditions` |
//! | schemas of responses: envelopes, pages and failures | `schema` |
//! | schemas of views, and their members that are always there | `view_schemas` |
//! | schemas of the domain's types | `domain_types` |
//! | schemas of the messages of webhooks | `event_schemas` |
//! | sentences about properties | `glossary` |
//! | inputs that make the simulator fail | `trying` |

mod body_schema;
mod conditions;
pub(crate) mod document;
mod domain_types;
pub(crate) mod event_schemas;
#[cfg(test)]
mod fields;
mod glossary;
mod nested_objects;
pub(crate) mod operation;
mod operation_doc;
mod parameter;
mod recorded_examples;
mod request_body;
mod response_headers;
pub(crate) mod schema;
pub(crate) mod served_document;
#[cfg(test)]
mod tests;
mod trying;
mod view_schemas;
mod webhooks;

pub(crate) use operation_doc::{OperationDoc, doc, example, invoice_file};
