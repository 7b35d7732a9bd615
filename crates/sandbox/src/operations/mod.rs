//! The operations of the authority. Each takes the call and the simulator's state, and never waits.

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
pub(crate) use sign::record_signed_invoice;
