//! Concepts that all other modules of the domain use, such as ids, codes, faults and refusals.

pub mod audit;
pub mod codes;
pub mod crash;
pub mod digest;
pub mod fault;
pub mod field_rule;
pub mod formula_mark;
pub mod ids;
pub mod invisible;
pub mod nearest_word;
pub mod refusal;
pub mod tracked;
pub mod upstream;
