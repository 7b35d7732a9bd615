//! Faults that can be injected.
//!
//! A fault comes from the control interface (`registry`) or from a word in an invoice number (`magic`). The module
//! `draw` provides the randomness of probabilities and latencies. This module only chooses the fault of a call; the
//! request handler applies it.

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
pub(crate) use registry::{FaultContext, Faults};
