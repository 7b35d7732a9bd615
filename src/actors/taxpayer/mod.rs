//! One actor per active taxpayer, the only writer of that taxpayer's data. It executes commands in batches, one transaction
//! a batch. Each command is decided alone; a refused command changes nothing.
//!
//! | Concept | File |
//! |---|---|
//! | the commands and their replies; how callers send them | `command`, `handle` |
//! | one batch, one transaction | `actor` |
//! | what a batch reads, works on and writes | `read_set`, `unit_of_work`, `indexes`, `write_set` |
//! | the decision of each command | `commands` |

mod actor;
pub mod command;
mod commands;
pub mod handle;
mod indexes;
mod read_set;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod unit_of_work;
mod write_set;

pub use actor::TaxpayerDeps;
