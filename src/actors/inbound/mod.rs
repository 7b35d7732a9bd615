//! Invoices and statuses from the authority. A notice is only a hint: the authority is asked again, and its answer is
//! recorded by the taxpayers' actors. Notices are not stored, so a repeated, late or reordered notice changes nothing;
//! the poller finds what a lost notice would have reported.
//!
//! | Concept | File |
//! |---|---|
//! | the addressee of an invoice | `addressee` |
//! | one notice | `notice` |
//! | a taxpayer's inbox: reading and acknowledging | `inbox` |
//! | the list of invoices in transit, read periodically | `transit_poller` |

mod addressee;
mod inbox;
mod notice;
mod transit_poller;

pub use addressee::{Inbound, NoticeError};
pub use inbox::{InboxDocument, InboxError};
pub use transit_poller::{PollSchedule, TransitPoller, TransitPollerActor};
