//! Concepts that every aggregate uses. Nothing here knows what an invoice is.

pub mod audit;
pub mod clock;
pub mod codes;
pub mod crash;
pub mod digest;
pub mod fault;
pub mod ids;
pub mod refusal;
