//! Responses: the envelope of a success, and the code, status and body of a failure.
//!
//! | File | Content |
//! |---|---|
//! | `code` | the table of all error codes, each with its usual status (docs/contract.md, "Errors") |
//! | `details` | the members of a failure's body that only some failures have |
//! | `entity_tag` | the entity tag of a response (RFC 9110, section 8.8.3), which is the digest of its bytes |
//! | `envelope` | the body of every success, `{ success, message, data }`, and the headers of a success |
//! | `error` | the failure of a request: error code, message for the caller, cause for the log |
//! | `file` | an answer that is a file, not the envelope |
//! | `logged_failure` | the part of a failure that the access log shows |
//! | `outside_error` | the failures of calls to the authority and to receivers of webhooks, as failures of a request |
//! | `redirect` | redirects after a form, with a notice for the page that they lead to |
//! | `render` | renders a failure: in the envelope of all responses, or as a problem document (RFC 9457) if the caller accepts one |

pub(crate) mod code;
pub(crate) mod details;
pub(crate) mod entity_tag;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod logged_failure;
mod outside_error;
pub(crate) mod redirect;
pub(crate) mod render;
