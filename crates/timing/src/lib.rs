//! The code about time that the service and its other crates share: clocks and randomness as arguments, jitter of
//! delays, the waits that a Retry-After asks for, histograms, recent counts, and the trace of a task. Nothing here
//! knows of actors, invoices or a database.

pub mod clock;
pub mod histograms;
pub mod jitter;
pub mod recent_count;
pub mod retry_after;
pub mod trace;

/// The id of a command and of its repetitions. Events carry it, so that the command's outcome can be looked up.
pub type CommandId = uuid::Uuid;
