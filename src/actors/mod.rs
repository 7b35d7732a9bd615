//! Floor 2: the actors.

pub mod supervision;
pub mod taxpayer;
