//! The event log of a taxpayer: its events, their delivery to an endpoint, and the signed heads of its hash chain.

pub mod checkpoint;
pub mod delivery;
pub mod endpoint_health;
pub mod event;
pub mod log_position;
pub mod replay;
pub mod selection;
