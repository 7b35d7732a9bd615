//! The code that runs around every handler.
//!
//! | Step | File |
//! |---|---|
//! | addresses without NUL, request id, span, panics, and the body of a failure | `request_context` |
//! | the client's address behind trusted proxies | `client_address` |
//! | the headers by which browsers run nothing in an answer that is no page | `content_policy` |
//! | the access log | `access_log` |
//! | requests for encodings that the service does not have | `encodings` |
//! | key, limits and idempotency, before the body is read | `policy` |
//! | names of the query string that an endpoint does not know, or that are given twice | `query_names` |
//! | a body that an endpoint does not take | `ignored_body` |
//! | entity tags, and 304 for a caller that already has the response | `held_answer` |
//! | the request log of the account that calls | `request_log` |
//! | the end of a relayed call's wait when its key ends | `key_watch` |
//! | the rest of a body that no handler read | `unread_body` |

pub(crate) mod access_log;
pub(crate) mod client_address;
mod content_policy;
pub(crate) mod encodings;
pub(crate) mod held_answer;
pub(crate) mod ignored_body;
mod key_watch;
pub(crate) mod policy;
pub(crate) mod query_names;
pub(crate) mod request_context;
pub(crate) mod request_log;
pub(crate) mod unread_body;
