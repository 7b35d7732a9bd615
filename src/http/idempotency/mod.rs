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
//! | who is being answered | `under_way` |
//! | a request with a key, from its arrival to its answer | `visit` |
//! | what a handler does with it | `once` |
//! | an answer, kept and given again | `kept` |

mod kept;
mod key;
mod once;
mod under_way;
mod visit;

pub(crate) use once::Keyed;
pub use under_way::UnderWay;
pub(crate) use visit::{in_progress, visit};
