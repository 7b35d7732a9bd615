//! Outages of the authority: detected by every replica, recorded once, and sent to every taxpayer that subscribes.
//!
//! - An outage is a row in the database. Writers lock a lane, and a unique index allows one open outage at a time.
//! - No replica owns an outage: if the replica that recorded an outage dies, any other replica can record its end.
//! - The transaction that records the start or the end of an outage queues a lane for each subscribed taxpayer. The
//!   dispatcher claims these lanes like any others. A repeated notification adds nothing, because the taxpayer's actor
//!   commits each event only once, with its deliveries.
//!
//! | Concept | File |
//! |---|---|
//! | this process's observations and the state of the outage | `detector` |
//! | the notification of one taxpayer | `notifier` |

mod detector;
mod notifier;

pub use detector::{OBSERVE_EVERY, OutageDetector};
pub use notifier::{NOTICES_MAX, OutageNotifier};
