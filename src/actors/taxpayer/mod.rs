//! One actor per active taxpayer, the only writer of its books. Commands are decided in batches: one
//! transaction, each command alone, a refusal leaves no trace.
//!
//! | Concept | File |
//! |---|---|
//! | what may be asked, and who asks it | `command`, `door` |
//! | one batch, one transaction | `bookkeeper` |
//! | what a batch needs, works on and writes | `load`, `books`, `desk`, `shelf`, `changes` |
//! | what each command does | `decide` |

mod bookkeeper;
mod books;
mod changes;
pub mod command;
mod decide;
mod desk;
pub mod door;
mod load;
mod shelf;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use bookkeeper::Desktop;
