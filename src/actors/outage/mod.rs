//! Outages of the authority: seen by every replica, written down once, told to every taxpayer that asked for it.
//!
//! - An outage is a row. Who changes it holds the lane, and a unique index lets one be open at a time.
//! - Nobody owns an outage: a replica that dies leaves its last words in the row, and any other ends it.
//! - Telling is a walk over taxpayers whose place is in the row. The news, and that it was told, are one commit of
//!   the taxpayer's books: after a kill the walk repeats some commands, and they add nothing.
//!
//! | Concept | File |
//! |---|---|
//! | what this process sees, and what becomes of it | `watch` |
//! | telling the taxpayers, some at a time | `crier` |
//! | the timer of both | `timer` |

mod crier;
mod timer;
mod watch;

pub use crier::Crier;
pub use timer::OutageActor;
pub use watch::Watch;
