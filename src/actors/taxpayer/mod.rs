//! One actor per active taxpayer, the only writer of its books. Commands are decided in batches: one
//! transaction, each command alone, a refusal leaves no trace.
//!
//! | Concept | File |
//! |---|---|
//! | what may be asked | `command` |
//! | who asks it | `door` |

pub mod command;
pub mod door;
