//! `Idempotency-Key`: if a caller sends several requests with the same key, only one of them is executed, and all of
//! them get its response.
//!
//! A command of the taxpayer's actor stores the key and the response in the transaction of its change, so a crash
//! cannot separate them. Any other response, such as a refusal, is stored after the request, which is safe to repeat.
//!
//! | Concept | File |
//! |---|---|
//! | the header | `key` |
//! | the requests in progress | `in_progress` |
//! | the parts that make two requests the same | `request_claim` |
//! | a request with a key, from its arrival to its response | `keyed_request` |
//! | a form of a page, whose token is its key | `form` |

mod form;
pub(super) mod in_progress;
mod key;
mod keyed_request;
mod request_claim;

pub(crate) use form::{ResultPage, answer_form, new_token, session_token};
pub use in_progress::InProgressRequests;
pub(crate) use keyed_request::{IdempotentRequest, answer_write};
