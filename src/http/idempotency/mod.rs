//! `Idempotency-Key`: of all requests of a caller with the same key one is carried out, and all get its answer.
//!
//! A command of the books takes the key in the transaction of its change, with the answer; so no crash, and no
//! other replica, can come between the two. What is no such command (a run that is joined by its IRN, a refusal)
//! may be done again without harm: its answer is kept after it. In progress is who is being answered by this
//! process; nothing is written down when a request begins.
//!
//! | Concept | File |
//! |---|---|
//! | the header | `key` |
//! | who is being answered | `in_progress` |
//! | a request with a key, from its arrival to its answer | `middleware` |
//! | what a handler does with it | `handler` |
//! | an answer, kept and given again | `stored_response` |

mod handler;
pub(super) mod in_progress;
mod key;
mod middleware;
mod stored_response;

pub(crate) use handler::IdempotentRequest;
pub use in_progress::InProgressRequests;
pub(crate) use middleware::visit;
