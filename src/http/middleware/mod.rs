//! The code that runs around every handler.
//!
//! | Step | File |
//! |---|---|
//! | request id, span, panics, and the body of a failure | `request_context` |
//! | the client's address behind trusted proxies | `client_address` |
//! | the access log | `access_log` |
//! | encodings that nobody has | `encodings` |
//! | key, limits and idempotency, before the body is read | `policy` |
//! | names of the query string that an endpoint does not know, or that are given twice | `query_names` |
//! | tags of answers, and 304 for who has one already | `held_answer` |
//! | the request log of the account that calls | `request_log` |
//! | the end of a relayed call's wait when its key ends | `key_watch` |
//! | the rest of a body that no handler read | `unread_body` |

pub(crate) mod access_log;
pub(crate) mod client_address;
pub(crate) mod encodings;
pub(crate) mod held_answer;
mod key_watch;
pub(crate) mod policy;
pub(crate) mod query_names;
pub(crate) mod request_context;
pub(crate) mod request_log;
pub(crate) mod unread_body;
