//! Outages of the authority: detected by every replica, recorded once, and sent to every taxpayer that subscribes.
//!
//! - An outage is a row. Writers hold the lane, and a unique index allows one open outage at a time.
//! - An outage has no owner: if a replica dies, any other one ends the outage.
//! - The row holds the progress of the notifications. An event and its delivery rows are one commit of the taxpayer,
//!   so commands that are repeated after a crash add nothing.
//!
//! | Concept | File |
//! |---|---|
//! | this process's observations and the state of the outage | `detector` |
//! | notifying the taxpayers in batches | `notifier` |
//! | the periodic actor of both | `actor` |

mod actor;
mod detector;
mod notifier;

pub use actor::OutageActor;
pub use detector::OutageDetector;
pub use notifier::OutageNotifier;
