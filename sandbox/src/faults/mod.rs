//! Everything that can go wrong, on order.
//!
//! A fault comes from the control interface (`registry`) or from a word in an invoice number (`magic`); `draw` is
//! the chance behind a probability, and behind a latency. What a fault does to a call is the gate's business, not
//! decided here.

mod draw;
mod effect;
mod magic;
mod order;
mod registry;

pub(crate) use draw::draw;
pub(crate) use effect::Effect;
pub use magic::{MAGIC_WORDS, MagicWord};
pub(crate) use magic::{is_offline, is_rejected, magic, ordered};
pub(crate) use order::parse_operation;
pub use order::{FaultKind, FaultOrder};
pub(crate) use registry::{Faults, Moment};
