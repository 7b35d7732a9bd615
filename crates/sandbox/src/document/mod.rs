//! Checks whether the authority would sign a document. The checks stop at the first fault.
//!
//! The simulator accepts any classification code, even if it is not in the reference lists.

mod check;
mod lines;
mod node;
mod parties;
mod taxes;
mod totals;

pub(crate) use check::{SignedValues, check, check_irn};
pub(crate) use node::Node;

#[cfg(test)]
mod tests;
