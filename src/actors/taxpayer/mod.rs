//! One actor per active taxpayer, which is the only writer of that taxpayer's data. An actor executes commands in
//! batches; the batches of several taxpayers may share a transaction. Each command is decided alone, and a refused
//! command changes nothing.
//!
//! | Concept | File |
//! |---|---|
//! | what a command is; the commands | `command`, `commands` |
//! | how callers send commands; a command on its way | `handle`, `envelope` |
//! | who acts in a request | `acting` |
//! | the actor, what all actors need, and what each keeps | `actor`, `deps`, `cached_state` |
//! | the group commit of several actors' batches | `committer` |
//! | one transaction; that of a large command, which is decided on a snapshot | `transaction`, `large_transaction` |
//! | whether a commit that failed took effect | `commit_lookup` |
//! | what its commands ask for, and loading it | `read_set`, `row_ids`, `load` |
//! | what commands work on | `unit_of_work`, `indexes` |
//! | what is added, and writing it | `write_set`, `flush` |
//! | how heavy a command is; turns of the large ones; the wait for lanes that others have locked | `weight`, `large_turns`, `held_lanes` |
//! | runs that begin in the commit that opens them | `direct_runs` |
//! | quarantined commands and their replay; panics ordered in development | `quarantined`, `panic_orders` |

pub mod acting;
mod actor;
mod cached_state;
pub mod command;
pub mod commands;
mod commit_lookup;
mod committer;
mod deps;
mod direct_runs;
pub mod envelope;
mod flush;
#[cfg(test)]
mod group_tests;
pub mod handle;
mod held_lanes;
mod indexes;
#[cfg(test)]
mod lane_tests;
#[cfg(test)]
mod large_tests;
mod large_transaction;
mod large_turns;
mod load;
pub mod panic_orders;
pub mod quarantined;
mod read_set;
mod row_ids;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod transaction;
mod unit_of_work;
mod weight;
mod write_set;

pub use deps::TaxpayerDeps;
