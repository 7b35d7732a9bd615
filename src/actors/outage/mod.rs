//! Outages of the authority: detected by every replica, recorded once, and sent to every taxpayer that subscribes.
//!
//! - An outage is a row in the database. Writers lock the lane, and a unique index allows one open outage at a time.
//! - No replica owns an outage: if the replica that recorded an outage dies, any other replica ends the outage.
//! - The row stores which taxpayer was notified last, so that another replica can continue after a crash. A repeated
//!   notification adds nothing, because the taxpayer's actor commits each event only once, with its deliveries.
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
