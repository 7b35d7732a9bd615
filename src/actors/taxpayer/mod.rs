//! One actor per active taxpayer, which is the only writer of that taxpayer's data. An actor executes commands in
//! batches; the batches of several taxpayers may share a transaction. Each command succeeds or is refused by itself,
//! and a refused command changes nothing.
//!
//! | Concept | File |
//! |---|---|
//! | the trait of a command; the commands | `command`, `commands` |
//! | the handle that sends commands, each in an envelope | `handle` |
//! | the person or key that acts in a request | `acting` |
//! | the actor; what all actors share; what each keeps between batches | `actor`, `deps`, `cached_state` |
//! | the group commit of several actors' batches | `committer` |
//! | the commands of one taxpayer in a transaction, and their outcome | `member` |
//! | the transaction of a group; the transactions of one taxpayer, also for a large command | `transaction`, `own_transaction` |
//! | the rows that commands ask for, and loading them; values that are unique; the new ids | `read_set`, `load`, `unique_values`, `row_ids` |
//! | the loaded rows and the changes of a batch | `unit_of_work`, `indexes`, `loaded_ledger` |
//! | the rows that a batch adds | `write_set` |
//! | the end of a transaction: writing all changes, those of accounts, and the commit | `flush`, `flush_account` |
//! | whether a commit that failed took effect | `commit_lookup` |
//! | the weight of a command; the turns of large commands | `weight`, `large_turns` |
//! | the wait for lanes that other transactions have locked | `held_lanes` |
//! | runs that are leased by the commit that opens them | `direct_runs` |
//! | the taxpayers that are paused; what each has used of this process | `paused`, `usage` |
//! | quarantined commands and their replay; panics requested in development | `quarantined`, `scheduled_panics` |

pub mod acting;
mod actor;
mod cached_state;
pub mod command;
pub mod commands;
mod commit_lookup;
mod committer;
mod deps;
mod direct_runs;
mod flush;
mod flush_account;
pub mod handle;
mod held_lanes;
mod indexes;
mod large_turns;
mod load;
mod loaded_ledger;
mod member;
mod own_transaction;
pub mod paused;
pub mod quarantined;
mod read_set;
mod row_ids;
pub mod scheduled_panics;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod transaction;
mod unique_values;
mod unit_of_work;
pub mod usage;
mod weight;
mod write_set;

pub use deps::TaxpayerDeps;
