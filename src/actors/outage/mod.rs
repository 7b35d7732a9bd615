//! Outages of the authority: detected by every replica, recorded once, and sent to every taxpayer that subscribes.
//!
//! - An outage is a row in the database. Writers lock the lane, and a unique index allows one open outage at a time.
//! - No replica owns an outage: if the replica that recorded an outage dies, any other replica ends the outage.
//! - The row stores the progress of the notifications. The taxpayer's actor commits an event together with its
//!   deliveries, so a notification that is repeated after a crash adds nothing.
//!
//! | Concept | File |
//! |---|---|
//! | this process's observations and the state of the outage | `detector` |
//! | notifying the taxpayers in batches | `notifier` |
//! | the actor that runs both periodically | `actor` |

mod actor;
mod detector;
mod notifier;

pub use actor::OutageActor;
pub use detector::OutageDetector;
pub use notifier::OutageNotifier;
