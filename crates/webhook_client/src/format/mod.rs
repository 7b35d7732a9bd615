//! Writes a notification in the data format of its receiver and reads the response. REST sends the notification as it
//! is; the other formats wrap it. For most of the other formats, a 2xx is a success only if the response body confirms
//! it.
//!
//! | Format | File |
//! |---|---|
//! | any format | `formatted_request` |
//! | SOAP 1.1 | `soap`, its elements in `xml` |
//! | a GraphQL mutation | `graphql` |
//! | an OData v4 entity | `odata` |
//! | a JSON-RPC 2.0 call | `jsonrpc` |

mod formatted_request;
mod graphql;
mod jsonrpc;
mod odata;
mod soap;
mod xml;

pub use formatted_request::{BodyFormat, FormattedRequest, interpret_body};
pub use soap::{default_action, is_method_name};
