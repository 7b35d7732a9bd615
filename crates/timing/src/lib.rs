//! Time and chance as arguments, the jitter of delays, the waits that a Retry-After asks for, histograms, recent counts, and the trace
//! that a task works for, which the service and its other crates share. Nothing here knows of actors, of invoices or of a database.

pub mod clock;
pub mod histograms;
pub mod jitter;
pub mod recent_count;
pub mod retry_after;
pub mod trace;

/// The id of a command and of its repetitions. Events carry it, so that the command's outcome can be looked up.
pub type CommandId = uuid::Uuid;
