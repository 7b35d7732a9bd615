//! What the authority does for each call it accepts.
//!
//! An operation takes the call and the books and answers data or a refusal. It never waits: what takes time (notices)
//! is queued.

mod answer;
mod catalog;
mod download;
mod irn;
mod payment;
mod perform;
mod report;
mod search;
mod sign;
mod transmission;

pub(crate) use perform::perform;
pub(crate) use sign::commit;
