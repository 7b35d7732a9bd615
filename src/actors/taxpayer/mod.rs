//! One actor per active taxpayer, which is the only writer of that taxpayer's data. An actor executes commands in
//! batches; the batches of several taxpayers may share a transaction. Each command is decided alone, and a refused
//! command changes nothing.
//!
//! | Concept | File |
//! |---|---|
//! | the commands and their replies; how callers send them | `command`, `handle` |
//! | who acts in a request | `acting` |
//! | the actor, and the group commit of several actors' batches | `actor`, `committer` |
//! | one transaction | `transaction` |
//! | how heavy a command is; turns of the large ones; the wait for lanes that others have locked | `weight`, `large_turns`, `held_lanes` |
//! | what a transaction reads, works on and writes | `read_set`, `unit_of_work`, `indexes`, `write_set` |
//! | quarantined commands and their replay; panics ordered in development | `quarantined`, `panic_orders` |
//! | the decision of each command | `commands` |

pub mod acting;
mod actor;
pub mod command;
mod commands;
mod committer;
mod direct_runs;
#[cfg(test)]
mod group_tests;
pub mod handle;
mod held_lanes;
mod indexes;
mod large_turns;
pub mod panic_orders;
pub mod quarantined;
mod read_set;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod transaction;
mod unit_of_work;
mod weight;
mod write_set;

pub use actor::TaxpayerDeps;
