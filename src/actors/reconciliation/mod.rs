//! Compares our ledger with the authority's, a taxpayer's day at a time. What is asked for is a row; whoever holds
//! the lane works on it, mends what goes forward by itself, through the taxpayers' actors, and lists the rest. What
//! is done twice changes nothing more.
//!
//! | Concept | File |
//! |---|---|
//! | who asks for a reconciliation and waits for it | `door` |
//! | what working on one takes, and why it may break off | `desk` |
//! | the authority's search, read back to a day | `search` |
//! | one day, invoice by invoice | `visit` |
//! | the lane, what is due, whose turn it is | `turn`, `timer` |

mod desk;
mod door;
mod search;
mod timer;
mod turn;
mod visit;

pub use desk::{Reconciler, Rhythm, Schedule};
pub use door::Reconciliations;
pub use timer::ReconcilerActor;
