//! Concepts that every aggregate uses; independent of invoices.

pub mod audit;
pub mod clock;
pub mod codes;
pub mod crash;
pub mod digest;
pub mod fault;
pub mod field_rule;
pub mod ids;
pub mod jitter;
pub mod path_segment;
pub mod refusal;
pub mod retry_after;
