//! What comes in from the authority. A notice is a hint: what it speaks of is asked for again, and only that
//! is recorded, by the taxpayers' actors. Nothing is kept of a notice itself, so hearing it twice, late or out of
//! order changes nothing; what was never heard is found by the pull.
//!
//! | Concept | File |
//! |---|---|
//! | who works with the authority's word | `desk` |
//! | one notice: what we sent, what we receive | `notice` |
//! | a taxpayer's inbox: reading and acknowledging | `inbox` |
//! | the list of invoices in transit, read on a timer | `pull`, `timer` |

mod desk;
mod inbox;
mod notice;
mod pull;
mod timer;

pub use desk::{Inbound, Unresolved};
pub use inbox::{Document, InboxFailure};
pub use pull::{Pull, Schedule};
pub use timer::PullActor;
