//! Selects the fault of a call, if any; the request handler then carries it out.
//!
//! A fault comes from the control interface (`registry`) or from a word in an invoice number (`magic`). `draw` provides
//! the random numbers.

mod draw;
mod effect;
mod magic;
mod registry;
mod request;

pub(crate) use draw::draw_millionths;
pub(crate) use effect::Effect;
pub use magic::{MAGIC_WORDS, MagicWord};
pub(crate) use magic::{fault_for_all, is_offline, is_rejected, magic_effect};
pub(crate) use registry::{FaultContext, Faults};
pub(crate) use request::parse_operation;
pub use request::{FaultKind, FaultOrder};
