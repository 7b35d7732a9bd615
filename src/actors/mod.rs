//! Floor 2: the actors.

pub mod pipeline;
pub mod supervision;
pub mod taxpayer;
