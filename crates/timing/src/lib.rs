//! Time and chance as arguments, the jitter of delays, and histograms, which supervision and the service share. Nothing
//! here knows of actors, of invoices or of a database.

pub mod clock;
pub mod histograms;
pub mod jitter;

/// The id of a command and of its repetitions. Events carry it, so that the command's outcome can be looked up.
pub type CommandId = uuid::Uuid;
