//! Receives invoices and statuses from the authority. A notice (the authority's message that an invoice has changed) is
//! only a hint: we ask the authority for the current state, and the taxpayers' actors record its answer. So a repeated,
//! late or reordered notice changes nothing, and notices are not stored. The poller finds what a lost notice would have
//! reported.
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

pub use addressee::{InboundInvoices, NoticeError};
pub use inbox::InboxError;
pub use transit_poller::TransitPoller;
