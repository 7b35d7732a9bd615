//! The event log of a taxpayer: its events, the endpoints to which they are delivered, and the signed heads of its hash
//! chain.

pub mod checkpoint;
pub mod delivery;
pub mod endpoint;
pub mod endpoint_health;
pub mod event;
pub mod log_position;
pub mod replay;
pub mod selection;
