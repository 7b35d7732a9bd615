//! How a notification is written for an ERP, and how its answer is read. REST is the notification as it is; the
//! others wrap it in the manner of their protocols, in which a 2xx alone does not say that it was taken.
//!
//! | Format | File |
//! |---|---|
//! | any of them | `letter` |
//! | SOAP 1.1 | `soap`, its elements in `xml` |
//! | a GraphQL mutation | `graphql` |
//! | an OData v4 entity | `odata` |
//! | a JSON-RPC 2.0 call | `jsonrpc` |

mod graphql;
mod jsonrpc;
mod letter;
mod odata;
mod soap;
mod xml;

pub use letter::{Letter, judged};
pub use soap::{action_of, is_method};
